"""The processes of a loop that `upgrade.py` upgrades."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import redis
from confluent_kafka import KafkaException, Producer

from tests.compatibility.upgrade_apis import Outage, serve
from tests.compatibility.upgrade_commits import Commits
from tests.compatibility.upgraded import HIGH, LOW, PREFIX, Load
from tests.services.sink.servers import free_port
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable
    from contextlib import ExitStack

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
RATE = 24
"""Events per second."""
PATIENCE_S, BETWEEN_S = 400, 15
STOPS, IS_KILLED, RUNS_BESIDE = "stops", "is killed", "runs beside the new one"


class Row(NamedTuple):
    """What was judged, what was expected, what was found, and whether all is right."""

    name: str
    expected: float
    found: float
    is_right: bool


class Upgrade:
    """The processes of a loop, of two versions. `environment`: their settings; `folder`: of logs and data."""

    def __init__(self, before: Path, folder: Path, running: ExitStack, seed: int) -> None:
        self.before, self.folder, self.running = before, folder, running
        self.load = Load(seed)
        self.outages: list[Outage] = []
        """From the workers' last commits to a kill, or to their next commits after the broker's outage."""
        self.handovers: list[Outage] = []
        """From the workers' last commits to the first moment at which no former owner of a partition is left."""
        self.commits = Commits()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ports: dict[str, int] = {}
        port, self.redis_port, url = free_port_pair(), free_port(), serve()
        self.kafka = f"127.0.0.1:{port}"
        self.environment = {
            "STATELOOP_APPLICATION": "upgraded:app",
            "STATELOOP_KAFKA": self.kafka,
            "STATELOOP_CHECKPOINT": f"{folder}/checkpoint",
            "STATELOOP_BATCH": "PT10S",
            "STATELOOP_CATCH_UP": "false",  # each event has a snapshot, so each crossing is there
            "STATELOOP_DRIVER_MEMORY": "1g",
            "STATELOOP_APIS": json.dumps({"registry": url, "pager": url}),
            "STATELOOP_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
            "STATELOOP_BROKER_DATA": f"{folder}/broker",
            "STATELOOP_BROKER_PORT": str(port),
            "STATELOOP_BROKER_HEAP": "300m",
            "STATELOOP_SINK_URL": f"redis://127.0.0.1:{self.redis_port}/0",
        }

    def start(self, part: str, checkout: Path) -> None:
        """Start a part of a version."""
        self.ports[part] = free_port()
        command = [sys.executable, "-m", module_of(part, checkout)]
        log = self.running.enter_context((self.folder / f"{part}-{version_of(checkout)}.log").open("ab"))
        environment = self._environment(checkout) | {"STATELOOP_HTTP_PORT": str(self.ports[part])}
        self.processes[part] = subprocess.Popen(
            command, cwd=checkout, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        self.running.callback(end, self.processes[part])

    def run(self, part: str, checkout: Path) -> None:
        """Run a command of a version to its end."""
        command = [sys.executable, "-m", module_of(part, checkout)]
        subprocess.run(command, cwd=checkout, env=self._environment(checkout), check=True, stdout=subprocess.DEVNULL)

    def replace(self, part: str, way: str) -> None:
        """Replace a part with the present one, and wait until that is ready."""
        old, committed = self.processes[part], self.commits.oldest()
        if way == IS_KILLED:
            os.killpg(old.pid, signal.SIGKILL)  # with its JVM
            if part == "services.enrichment":
                self.outages.append((committed, time.time()))
        elif way == STOPS:
            old.send_signal(signal.SIGTERM)
        if way != RUNS_BESIDE:
            old.wait(PATIENCE_S)
        self.start(part, ROOT)
        until(lambda: self.is_ready(part), f"{part} is ready")
        if way == RUNS_BESIDE:
            time.sleep(BETWEEN_S)
            old.send_signal(signal.SIGTERM)
            old.wait(PATIENCE_S)
        if part == "services.enrichment":
            self.handovers.append((committed, time.time()))
        report(f"{part}: the old one {way} (exit code {old.returncode}); {self.load.sent} events are sent")

    def replace_broker(self) -> None:
        """Replace the broker; the loop waits meanwhile. The outage ends when all partitions are committed again.

        A member of a group that is 10 s without its coordinator leaves the group, even after the broker is back: its
        calls are given up, and what it has not committed is read again.
        """
        old, committed = self.processes["services.tools.broker"], self.commits.oldest()
        old.send_signal(signal.SIGTERM)
        old.wait(PATIENCE_S)
        self.start("services.tools.broker", ROOT)
        self.await_broker()
        back = time.time()
        self.run("services.tools.topics", ROOT)
        until(lambda: self.are_running() and self.commits.have_all_changed(back), "commits after the outage")
        self.outages.append((committed, time.time()))
        self.handovers.append(self.outages[-1])
        report(f"the broker: the old one stops; {self.load.sent} events are sent")

    def await_broker(self) -> None:
        """Wait until the broker answers."""
        client = Producer({"bootstrap.servers": self.kafka, "log_level": 0})
        until(lambda: self.are_running() and client.list_topics(timeout=2), "a broker")

    def are_running(self) -> bool:
        """Return True while all parts run. Raises ChildProcessError."""
        for part, process in self.processes.items():
            if process.poll() is not None:
                raise ChildProcessError(f"{part} has exit code {process.returncode}: see {self.folder}")
        return True

    def is_ready(self, part: str) -> bool:
        """Return whether a part answers that it is ready; all must run."""
        self.are_running()
        connection = HTTPConnection("127.0.0.1", self.ports[part], timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def send(self, is_over: threading.Event) -> None:
        """Send events until it is over."""
        options = {"bootstrap.servers": self.kafka, "enable.idempotence": True, "partitioner": "murmur2_random"}
        producer = Producer(options | {"linger.ms": 5, "log_level": 0})
        producer.produce(f"{PREFIX}limits", json.dumps({"value": {"high": HIGH, "low": LOW}}), "everywhere")
        producer.flush()
        while not is_over.wait(1 / RATE):
            key, value = self.load.event()
            producer.produce(f"{PREFIX}events", value, key)
            producer.poll(0)
        if producer.flush(PATIENCE_S):
            raise TimeoutError("events are not acknowledged")

    def _environment(self, checkout: Path) -> dict[str, str]:
        return os.environ | self.environment | {"PYTHONPATH": f"{HERE}:{checkout}"}


def module_of(part: str, checkout: Path) -> str:
    """Return the module of a part; in some versions tools are in `services`."""
    has_tools = (checkout / "services/tools").is_dir()
    return part if has_tools else part.replace(".tools.", ".")


def version_of(checkout: Path) -> str:
    """Return the name of a checkout's version in the names of logs."""
    return "new" if checkout == ROOT else "old"


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if condition():
                return
        except (KafkaException, redis.RedisError):
            pass
        time.sleep(0.5)
    raise TimeoutError(what)


def report(line: str) -> None:
    """Print a line with the time."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def upgrade_seeds(upgrade: Callable[[Path, Path, int], Iterable[Row]]) -> int:
    """Upgrade once for each seed, as `upgrade(before, folder, seed)`, with CHECKOUT, FOLDER and SEEDS as the arguments.

    Return the exit code.
    """
    before, folder, *seeds = sys.argv[1:]
    broken = 0
    for seed in seeds or ["1"]:
        run = Path(folder).resolve() / seed
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(parents=True)
        report(f"seed {seed}")
        for row in upgrade(Path(before).resolve(), run, int(seed)):
            broken += not row.is_right
            report(f"{row.name:60} {row.expected:8g} {row.found:8.6g} {'' if row.is_right else 'WRONG'}")
    return 1 if broken else 0
