"""How a service stands up to reads, batches, pushes and a restart, while the topic that it follows is written."""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import cores, topics
from bench.harness.background import Background
from bench.harness.figures import percentiles
from bench.harness.load import preload
from bench.harness.process import RunningJob
from bench.harness.results import RunResult
from bench.query.check import final, watching
from bench.query.facts import service_facts
from bench.query.footprint import disk_mb, own_mb
from bench.query.generators import BATCH
from bench.query.needs import require
from bench.query.probes import pushed, visible
from bench.query.records import TOPIC, all_keys, checked, key, placed
from bench.query.servers import SERVERS, Server
from bench.query.updates import updating

if TYPE_CHECKING:
    from bench.harness.figures import Figures
    from bench.harness.jobs import Job
    from bench.harness.oracle import OracleReport
    from bench.harness.plan import Plan, Site
    from bench.harness.progress import Show
    from bench.query.measures import Keys

TOPICS = (TOPIC, "query_instances")
LAST = 50
"""Keys that are looked for, the last ones on the topic, to see that all have been read."""
PAUSE_S = 0.02
LOAD_S = 600.0
RESTART_S = 120.0
SETTLE_S = 3.0


class KeyQueries:
    """Measures one service at a time, each on a topic of its own."""

    def __init__(self, keys: Keys, plan: Plan, site: Site) -> None:
        self._keys, self._plan, self._site = keys, plan, site
        self._core = cores.measured()

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one service. Raises RunFailedError, ProgramMissingError."""
        server, name = SERVERS[job.name], f"{self._keys.name}-{job.name}-{run}"
        require(server.needs, lambda what: show(what, 0.0))
        began = self._fill(show)
        with cores.left_to(self._core, os.getpid(), *self._site.pids), service_facts(self._site, name) as facts:
            figures, report = self._run(server, name, facts | {"core": str(self._core)}, began, show)
        return RunResult(self._keys.name, job.name, run, figures, report, size=self._plan.size(self._keys))

    def _run(
        self, server: Server, name: str, facts: dict[str, str], began: str, show: Show
    ) -> tuple[Figures, OracleReport]:
        show("reading the topic", 0.2)
        with RunningJob(server.job, self._plan, self._site, f"{name}-1", facts) as running:
            figures = {"rebuild_s": self._await(running, server, facts, self._last, LOAD_S)}
            more, report = self._query_keys(server, running, facts, began, show)
            figures |= more | self._footprint(running, facts)
            running.group.kill()
        show("starting again", 0.9)
        with RunningJob(server.job, self._plan, self._site, f"{name}-2", facts) as running:
            figures["restart_s"] = self._await(running, server, facts, [0], RESTART_S)
        return figures, report

    def _query_keys(
        self, server: Server, running: RunningJob, facts: dict[str, str], began: str, show: Show
    ) -> tuple[Figures, OracleReport]:
        """Everything that is measured under updates, and whether all was right."""
        keys, port, boot = self._keys, int(facts["port"]), self._site.boot
        with (
            closing(server.store_client(port)) as store_client,
            Background(updating, boot, keys.keys, keys.rate, began) as updates,
            Background(watching, server.store_client, port, keys.keys) as watch,
        ):
            time.sleep(SETTLE_S)
            figures, versions = ({}, {}) if keys.pushes_only else self._read(server, running, port, began, show)
            if server.pushes:
                show("pushing", 0.8)
                pushes = pushed(boot, began, port, keys.subscribers, keys.seconds)
                figures |= {f"push_{name}": value for name, value in percentiles(pushes.latencies).items()}
                versions |= pushes.versions
            watched = watch.finish()
            versions |= updates.finish()
            show("checking", 0.85)
            report = final(store_client, keys.keys, versions)
        report.wrong, report.example = report.wrong + watched.wrong, report.example or watched.example
        figures["checked"] = report.events + watched.events
        return figures, report

    def _read(
        self, server: Server, running: RunningJob, port: int, began: str, show: Show
    ) -> tuple[Figures, dict[int, int]]:
        """How many keys it answers for, and how soon it shows what is written; with the versions that were."""
        seconds = self._keys.seconds
        show("updates alone", 0.4)
        figures = {"update_cores": _cores(running, seconds / 2)} | self._loaded(server, running, port, show)
        show("reading what was written just now", 0.7)
        with closing(server.store_client(port)) as store_client:
            seen = visible(self._site.boot, began, store_client, seconds)
        return figures | {
            f"visible_{name}": value for name, value in percentiles(seen.latencies).items()
        }, seen.versions

    def _loaded(self, server: Server, running: RunningJob, port: int, show: Show) -> Figures:
        load, seconds = server.load(port, self._keys.keys), self._keys.seconds
        show("reading keys", 0.45)
        used = running.group.cpu_s()
        full = load.gets(seconds)
        used = running.group.cpu_s() - used
        figures = {"gets_per_s": full.rate, "gets_per_cpu_s": full.requests / used, "full_p99_ms": full.p99_ms}
        figures["over_2s"] = full.over_2s
        if server.paced:
            show("reading keys at half that rate", 0.55)
            half = load.gets(seconds, full.rate / 2)
            figures |= {"half_per_s": half.rate, "half_p99_ms": half.p99_ms, "half_over_2s": half.over_2s}
        show("reading batches", 0.65)
        used = running.group.cpu_s()
        batches = load.batches(seconds)
        used = running.group.cpu_s() - used
        running.require_running()
        return figures | {
            "batch_keys_per_s": batches.rate * BATCH,
            "batch_keys_per_cpu_s": batches.requests * BATCH / used,
        }

    def _fill(self, show: Show) -> str:
        """Put all keys on the topic; return the start of their windows."""
        began = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        topics.renew(self._site.boot, TOPICS)
        count = self._keys.keys
        preload(
            self._site.boot, TOPIC, all_keys(count, began), lambda sent: show(f"sent {sent:,} of {count:,} keys", 0.0)
        )
        return began

    @property
    def _last(self) -> list[int]:
        return [placed(index, self._keys.keys) for index in range(self._keys.keys - LAST, self._keys.keys)]

    def _await(
        self, running: RunningJob, server: Server, facts: dict[str, str], numbers: list[int], patience_s: float
    ) -> float:
        """The seconds from its start until it answers for these keys. Raises JobExitedError, JobStalledError."""
        with closing(server.store_client(int(facts["port"]))) as store_client:
            while True:
                with suppress(OSError):
                    if all(checked(one, store_client.read(key(one)) or b"") for one in numbers):
                        return time.time() - running.began
                running.require_running()
                if time.time() - running.began > patience_s:
                    raise running.stalled("answer for its last keys", patience_s)
                time.sleep(PAUSE_S)

    def _footprint(self, running: RunningJob, facts: dict[str, str]) -> Figures:
        return {
            "rss_mb": running.group.rss_mb(),
            "own_mb": own_mb(running.group.pids()),
            "disk_mb": disk_mb(Path(facts["data"])),
        }


def _cores(running: RunningJob, seconds: float) -> float:
    used = running.group.cpu_s()
    time.sleep(seconds)
    return (running.group.cpu_s() - used) / seconds
