"""The checks with all layers: a Spark cluster, three workers, and Prometheus."""

from __future__ import annotations

import json

from tests.compose.lab.checks import Checks
from tests.compose.lab.errors import StackError

FILES = ("compose.cluster.yaml", "compose.observability.yaml")
STAY = ("kafka", "job", "enrichment", "reference", "derive", "query", "spark-master", "spark-worker")
WORKERS = 3
CRASH_AFTER = 3_000


class Layers(Checks):
    """The checks. Each raises StackError, or CommandFailedError, when it does not hold."""

    def run(self) -> None:
        """All of it."""
        with self._steps.step(f"docker compose up --scale enrichment={WORKERS}, from nothing, with all layers"):
            self._stack.up(f"--scale=enrichment={WORKERS}")
        with self._steps.step(f"one of Spark's workers crashes after {CRASH_AFTER} snapshots and comes back by itself"):
            self._court.seen(CRASH_AFTER)
            self._stack.crash("spark-worker", of=2)
        with self._steps.step("every flight of that day is as in the tables"):
            self._court.agree()
            self._stack.await_well(*STAY)
            for line in self._stack.usage():
                self._steps.report(line)
        with self._steps.step(f"all {WORKERS} workers share the calls"):
            self.require_shared_calls()
        with self._steps.step("Prometheus gives a value for every figure of the dashboard"):
            port = self._stack.commands.environment["PROMETHEUS_PORT"]
            output = self._court.run_module("tests.compose.lab.dashboard", f"--prometheus=127.0.0.1:{port}")
            self._steps.report(output.strip())
        with self._steps.step("docker compose down --volumes leaves nothing"):
            self._stack.remove()

    def require_shared_calls(self) -> None:
        """Each worker has made calls, by its own last line of figures."""
        workers = self._stack.containers("enrichment")
        made = {worker["Name"].rpartition("-")[2]: calls(self._stack.output(worker["Id"])) for worker in workers}
        self._steps.report(", ".join(f"worker {name}: {count} calls" for name, count in sorted(made.items())))
        if len(made) != WORKERS or not all(made.values()):
            raise StackError(f"not all of {WORKERS} workers have made calls: {made}")


def calls(output: str) -> int:
    """Return the number of calls of a worker, from its last line of metrics."""
    last = next((line for line in reversed(output.splitlines()) if '"stats"' in line), None)
    return int(sum(json.loads(last)["calls"].values())) if last else 0
