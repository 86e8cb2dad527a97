"""How long a query of the coverage of a patient takes, over HTTP, each answer checked."""

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

import orjson
from confluent_kafka import Producer

from bench.coverage.application import HOUR, queried
from bench.coverage.measures import CoverageQueries
from bench.coverage.seconds import SEED, is_present, spans
from bench.harness import topics
from bench.harness.figures import Figures, percentiles
from bench.harness.jobs import Job
from bench.harness.oracle import OracleReport
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.results import RunResult
from bench.query.facts import service_facts
from bench.query.store_clients import HttpStoreClient
from contracts.types.quantize import EPOCH
from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key

PAUSE_S = 0.05
PATIENCE_S = 60.0
MADE = ("queried.snapshots", queried.topics.instances)


class Patient(NamedTuple):
    """A patient, and for each second from `start` on whether it has an event."""

    name: str
    start: datetime
    seconds: list[bool]

    def snapshots(self) -> Iterator[Snapshot]:
        """The snapshot of each hour."""
        hour_s = round(HOUR.total_seconds())
        for number in range(len(self.seconds) // hour_s):
            start, hour = self.start + number * HOUR, self.seconds[number * hour_s : (number + 1) * hour_s]
            covered = [[first, end] for present, first, end in spans(hour) if present]
            state = {"count": sum(hour), "covered": covered}
            yield Snapshot(device_id=self.name, first_seen=start, version=sum(hour), as_of=start + HOUR, state=state)

    def is_answered_by(self, answer: dict[str, Any]) -> bool:
        """Whether the intervals are those of the seconds."""
        found = [
            (one["kind"] == "data", self._second(one["from"]), self._second(one["to"])) for one in answer["intervals"]
        ]
        return found == list(spans(self.seconds))

    def _second(self, time: str) -> int:
        return round((datetime.fromisoformat(time) - self.start).total_seconds())


class CoverageLookups:
    """Fills the topic of snapshots, and queries one patient after the other on one connection."""

    def __init__(self, queries: CoverageQueries, plan: Plan, site: Site) -> None:
        self._queries, self._plan, self._site = queries, plan, site

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run. Raises RunFailedError."""
        queries, name = self._queries, f"{self._queries.name}-{job.name}-{run}"
        show("writing the snapshots", 0.0)
        patients = self._fill()
        with (
            service_facts(self._site, name) as facts,
            RunningJob(job, self._plan, self._site, name, facts) as running,
            closing(HttpStoreClient(int(facts["port"]), queried.name)) as client,
        ):
            self._await(running, client, patients)
            show("querying", 0.3)
            self._query(client, patients, queries.seconds / 4)  # a service that has just started is slower
            used = running.group.cpu_s()
            took, report = self._query(client, patients, queries.seconds)
            used = running.group.cpu_s() - used
            running.require_running()
        figures: Figures = percentiles(took) | {"us_per_query": 1e6 * used / len(took)}
        return RunResult(queries.name, job.name, run, figures, report, size=self._plan.size(queries))

    def _fill(self) -> list[Patient]:
        """Put the snapshots of all patients on the topic. The last hour is the one before the present one."""
        topics.renew(self._site.boot, MADE)
        random, hours = Random(SEED), self._queries.hours  # noqa: S311  # a load keeps no secret
        start = EPOCH + (int(time.time() // HOUR.total_seconds()) - hours) * HOUR
        seconds = round(hours * HOUR.total_seconds())
        patients = [
            Patient(f"p{number}", start, [is_present(random) for _ in range(seconds)])
            for number in range(self._queries.patients)
        ]
        producer = Producer({"bootstrap.servers": self._site.boot, "linger.ms": 20})
        for patient in patients:
            place = partition(patient.name.encode(), topics.PARTITIONS)
            for one in patient.snapshots():
                producer.produce(MADE[0], one.encode(), window_key(*one.window), partition=place)
            producer.poll(0)
        producer.flush()
        return patients

    def _query(
        self, client: HttpStoreClient, patients: list[Patient], seconds: float
    ) -> tuple[list[float], OracleReport]:
        """Query patients at random; gives how long each query took, in seconds."""
        random, took, end = Random(SEED), list[float](), time.monotonic() + seconds  # noqa: S311
        report = OracleReport(events=0, given="queries", gives="answer")
        while time.monotonic() < end:
            patient = random.choice(patients)
            begun = time.monotonic()
            answer = client.read(self._path(patient)) or b"{}"
            took.append(time.monotonic() - begun)
            report.events += 1
            if not patient.is_answered_by(orjson.loads(answer)):
                report.wrong += 1
                report.example = report.example or repr(answer[:300])
        report.snapshots = report.events
        return took, report

    def _path(self, patient: Patient) -> str:
        start, end = (one.isoformat().replace("+00:00", "Z") for one in self._range(patient))
        return f"{patient.name}/coverage?from={start}&to={end}"

    def _range(self, patient: Patient) -> tuple[datetime, datetime]:
        return patient.start, patient.start + self._queries.hours * HOUR

    def _await(self, running: RunningJob, client: HttpStoreClient, patients: list[Patient]) -> None:
        """Return when the last snapshots can be read. Raises JobExitedError, JobStalledError."""
        deadline, waiting = time.monotonic() + PATIENCE_S, patients[-20:]
        while waiting:
            running.require_running()
            if time.monotonic() > deadline:
                raise running.stalled("answer for its last patients", PATIENCE_S)
            with suppress(OSError):
                waiting = [
                    one
                    for one in waiting
                    if not one.is_answered_by(orjson.loads(client.read(self._path(one)) or b'{"intervals":[]}'))
                ]
            time.sleep(PAUSE_S)
