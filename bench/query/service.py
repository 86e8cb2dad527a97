"""How a service stands up to reads, batches and a restart, while the topic that it follows is written."""

import asyncio
import os
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from typing_extensions import override

from bench.harness import machine, topics
from bench.harness.background import Background
from bench.harness.figures import Figures, percentiles
from bench.harness.load import preload
from bench.harness.measure import Measure, Meter, Show, Site
from bench.harness.process import RunningJob
from bench.harness.results import OracleReport
from bench.query.check import final, watching
from bench.query.generators import BATCH, Wrk
from bench.query.probes import updating, visible
from bench.query.push import NOTHING_PUSHED, WATCHERS, Pushed, push
from bench.query.records import TOPIC, all_keys, checked, key, placed
from bench.query.services import SERVICES, Service
from bench.query.store_clients import StoreClient

LAST = 50
"""Keys that are looked for, the last ones on the topic, to see that all have been read."""
PAUSE_S = 0.02
LOAD_S = 600.0
RESTART_S = 120.0
SETTLE_S = 3.0
BLOCK = 512
"""Bytes, of st_blocks in stat(2)."""


@dataclass(frozen=True)
class Keys(Measure[Service]):
    """Keys that are all on the topic before a service starts, and then updated at a rate while they are queried."""

    keys: int
    rate: int
    """Updates a second, of keys at random."""
    seconds: int
    """How long each part is measured."""
    jobs = SERVICES

    def __str__(self) -> str:
        return f"{self.keys:,} keys of 500 bytes, {self.rate:,} updates/s meanwhile, {self.seconds} s each"

    @override
    def meter(self, site: Site) -> "KeyQueries":
        return KeyQueries(self, site)


class KeyQueries(Meter[Service]):
    """Measures one service at a time, each on a topic of its own."""

    def __init__(self, keys: Keys, site: Site) -> None:
        self._keys, self._site = keys, site
        self._core = machine.measured_core()

    @override
    def measure(self, job: Service, name: str, show: Show) -> tuple[Figures, OracleReport]:
        began, pids = self._fill(show), (os.getpid(), *self._site.pids)
        with machine.kept_from(self._core, *pids), service_facts(self._site, name) as facts:
            show("reading the topic")
            with RunningJob(job, self._site, f"{name}-1", facts | {"core": str(self._core)}) as running:
                run = ServiceRun(self._keys, job, running, self._site.boot, int(facts["port"]))
                rebuild_s = run.await_answers(self._last, LOAD_S)
                figures, report = run.under_updates(began, show)
                figures |= {
                    "rebuild_s": rebuild_s,
                    "rss_mb": running.group.rss_mb(),
                    "own_mb": running.group.own_mb(),
                    "disk_mb": disk_mb(Path(facts["data"])),
                }
                running.group.kill()
            show("starting again")
            with RunningJob(job, self._site, f"{name}-2", facts | {"core": str(self._core)}) as running:
                run = replace(run, running=running)
                figures["restart_s"] = run.await_answers([0], RESTART_S)
        return figures, report

    def _fill(self, show: Show) -> str:
        """Put all keys on the topic; return the start of their windows."""
        began = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        topics.renew(self._site.boot, TOPIC, "query_instances")
        preload(self._site.boot, TOPIC, all_keys(self._keys.keys, began), show)
        return began

    @property
    def _last(self) -> list[int]:
        return [placed(index, self._keys.keys) for index in range(self._keys.keys - LAST, self._keys.keys)]


@dataclass(frozen=True)
class ServiceRun:
    """A service that runs, and what is measured of it."""

    keys: Keys
    service: Service
    running: RunningJob
    boot: str
    port: int

    @contextmanager
    def client(self) -> Iterator[StoreClient]:
        """A connection to it."""
        with closing(self.service.store_client(self.port)) as client:
            yield client

    def await_answers(self, numbers: Sequence[int], patience_s: float) -> float:
        """The seconds from its start until it answers for these keys. Raises JobExitedError, JobStalledError."""
        running = self.running
        with self.client() as client:
            while True:
                with suppress(OSError):
                    if all(checked(number, client.read(key(number)) or b"") for number in numbers):
                        return time.time() - running.began
                running.require_running()
                if time.time() - running.began > patience_s:
                    raise running.stalled("answer for its last keys", patience_s)
                time.sleep(PAUSE_S)

    def under_updates(self, began: str, show: Show) -> tuple[Figures, OracleReport]:
        """Everything that is measured under updates, and whether all was right."""
        keys, boot, seconds = self.keys, self.boot, self.keys.seconds
        with (
            Background(updating, boot, keys.keys, keys.rate, began) as updates,
            Background(watching, self.service.store_client, self.port, keys.keys) as watch,
        ):
            time.sleep(SETTLE_S)
            show("updates alone")
            figures = {"update_cores": self._cores(seconds / 2)} | self._loaded(show)
            show("reading what was written just now")
            with self.client() as client:
                seen = visible(boot, began, client, seconds)
            figures |= {f"visible_{name}": value for name, value in percentiles(seen.latencies).items()}
            pushed = self._pushed(began, show) if self.service.has_pages else NOTHING_PUSHED
            watched = watch.finish()
            versions = seen.versions | pushed.versions | updates.finish()
            show("checking")
            with self.client() as client:
                report = final(client, keys.keys, versions)
        report.wrong, report.example = report.wrong + watched.wrong, report.example or watched.example
        return figures | pushed.figures | {"checked": report.events + watched.events}, report

    def _loaded(self, show: Show) -> Figures:
        load, seconds = self.service.load(self.port, self.keys.keys), self.keys.seconds
        show("reading keys")
        used = self.running.cpu_s()
        full = load.gets(seconds)
        used = self.running.cpu_s() - used
        figures = {"gets_per_s": full.rate, "gets_per_cpu_s": full.requests / used, "full_p99_ms": full.p99_ms}
        figures["over_2s"] = full.over_2s
        if self.service.is_paced:
            show("reading keys at half that rate")
            half = load.gets(seconds, full.rate / 2)
            figures |= {"half_per_s": half.rate, "half_p99_ms": half.p99_ms, "half_over_2s": half.over_2s}
        show("reading batches")
        used = self.running.cpu_s()
        batches = load.batches(seconds)
        used = self.running.cpu_s() - used
        figures["batch_keys_per_s"] = batches.rate * BATCH
        figures["batch_keys_per_cpu_s"] = batches.requests * BATCH / used
        if isinstance(load, Wrk) and self.service.has_pages:
            show("reading pages")
            used = self.running.cpu_s()
            pages = load.pages(seconds)
            figures["page_keys_per_cpu_s"] = pages.requests * BATCH / (self.running.cpu_s() - used)
        self.running.require_running()
        return figures

    def _pushed(self, began: str, show: Show) -> Pushed:
        show(f"pushing to {WATCHERS:,} watchers")
        return asyncio.run(push(self.boot, self.port, began, self.keys.seconds, self.running.cpu_s))

    def _cores(self, seconds: float) -> float:
        used = self.running.cpu_s()
        self.running.wait(seconds)
        return (self.running.cpu_s() - used) / seconds


@contextmanager
def service_facts(site: Site, name: str) -> Iterator[dict[str, str]]:
    """The facts of one run: a free port, and a folder that lasts as long, so that a service finds it when restarted."""
    data = site.folder / "run" / f"{name}-data"
    data.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    try:
        yield {"port": str(port), "data": str(data), "group": name}
    finally:
        shutil.rmtree(data, ignore_errors=True)


def disk_mb(folder: Path) -> float:
    """Return the disk space of the files below a folder, in MB of 1,000,000 bytes, without holes."""
    return sum(path.stat().st_blocks for path in folder.rglob("*") if path.is_file()) * BLOCK / 1e6
