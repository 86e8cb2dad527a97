"""From an event's sending until the query service shows it, through the real job."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

import orjson

from bench.harness import topics
from bench.harness.background import Background
from bench.harness.errors import RunFailedError
from bench.harness.figures import percentiles, within
from bench.harness.latency import LEAD_S, Latency
from bench.harness.load import EVENTS, SensorReading, keyed, steady
from bench.harness.oracle import OracleReport, SnapshotDecoder
from bench.harness.plan import Stream
from bench.harness.process import RunningJob
from bench.harness.receive import receive
from bench.harness.results import RunResult
from bench.query.facts import service_facts
from bench.query.servers import service_of
from bench.query.store_clients import HttpStoreClient
from bench.yardstick.application import app

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.harness.figures import Figures
    from bench.harness.jobs import Job
    from bench.harness.plan import Plan, Site
    from bench.harness.progress import Show
    from bench.harness.receive import Received
    from bench.query.measures import LoopMeasure

    Published = Mapping[tuple[str, int], float]
    """The time of each snapshot, in seconds of the epoch, by its device and its number of events."""

DEVICES = 20
BETWEEN_S = 0.02
PATIENCE_S = 10
BEFORE_S = 1.0
"""So long before a batch's end events may wait for the next one."""
SERVICE = service_of("query", "bench.yardstick.application:app")


class VisibleEvent(NamedTuple):
    """The number of a device's event, the time at which it was sent, in seconds of the epoch, and its latency."""

    device: str
    number: int
    at: float
    took_s: float


class Reads(Protocol):
    """A client that reads a key."""

    def read(self, key: str) -> bytes | None:
        """See StoreClient."""
        ...


class NotServedError(RunFailedError):
    """An event did not come within PATIENCE_S."""

    def __init__(self, device: str, number: int, answer: bytes) -> None:
        super().__init__(f"event {number} of {device} was not shown within {PATIENCE_S} s, but {answer[:200]!r}")


class EventVisibility:
    """Measures our job and our service together, with other events meanwhile."""

    def __init__(self, loop: LoopMeasure, plan: Plan, site: Site) -> None:
        self._loop, self._plan, self._site = loop, plan, site
        self._stream = Stream(loop.name, loop.rate, loop.seconds, loop.warm_s)

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run. Raises RunFailedError."""
        loop, boot, name = self._loop, self._site.boot, f"{self._loop.name}-{job.name}-{run}"
        topics.renew(boot, (*topics.INPUTS, *topics.OUTPUTS, app.topics.instances))
        with (
            service_facts(self._site, name) as facts,
            RunningJob(SERVICE, self._plan, self._site, f"{name}-service", facts) as service,
            RunningJob(job, self._plan, self._site, name) as running,
            Background(steady, boot, loop.rate, self._stream.fleet()),
            Background(receive, boot, "snapshots") as receiver,
            closing(HttpStoreClient(int(facts["port"]), app.name)) as store_client,
        ):
            begin = Latency(self._stream, self._plan, self._site).warm_up(running, show)
            show("sending events and querying them", 0.5)
            events = measure_visibility(boot, store_client, loop.seconds)
            service.require_running()
            commits, received = running.commits(), receiver.finish()
        figures = outside(events, commits, published(received, SnapshotDecoder(job)))
        figures["boundaries"] = within(commits, begin, events[-1].at)
        report = OracleReport(events=len(events), snapshots=len(events), gives="answer that shows it")
        return RunResult(loop.name, job.name, run, figures, report, size=self._plan.size(loop))


def measure_visibility(boot: str, store_client: Reads, seconds: float) -> list[VisibleEvent]:
    """Send an event, and ask for the state that has it, again and again. Raises NotServedError."""
    made, random = keyed(boot, linger_ms=0), Random(1)  # noqa: S311  # a load keeps no secret
    first_seen, found, end = _now(), list[VisibleEvent](), time.monotonic() + seconds
    for turn in range(sys.maxsize):
        if time.monotonic() > end:
            break
        time.sleep(random.uniform(0, 2 * BETWEEN_S))
        device, number = f"probe{turn % DEVICES}", turn // DEVICES + 1
        event = SensorReading(device, number, first_seen, _now(), 20.0).encode()
        at, begun = time.time(), time.monotonic()
        made.produce(EVENTS, event, device)
        made.poll(0)
        answer = store_client.read(f"{device}?min_version={number}&wait={PATIENCE_S}") or b"nothing"
        found.append(VisibleEvent(device, number, at, time.monotonic() - begun))
        if not answer.startswith(b"{") or orjson.loads(answer)["value"]["state"]["events"] != number:
            raise NotServedError(device, number, answer)
    made.flush()
    return found


def published(received: Iterable[Received], reader: SnapshotDecoder) -> Published:
    """Return the time at which a consumer of the topic received each snapshot first."""
    found: dict[tuple[str, int], float] = {}
    for at, value in received:
        if snapshot := reader.read(value):
            found.setdefault((snapshot.device, snapshot.events), at)
    return found


def outside(events: Sequence[VisibleEvent], commits: Sequence[float], snapshots: Published) -> Figures:
    """Return the latencies of the events that were not sent near the end of a batch, and the longest of all.

    `visible` is until the answer, `snapshot` until its snapshot came to a consumer of the topic, `shown` the rest.
    """
    apart = [one for one in events if not any(-BEFORE_S < one.at - end < LEAD_S for end in commits)]
    found = [(one.took_s, snapshots[one[:2]] - one.at) for one in apart if one[:2] in snapshots]
    times = {
        "visible": [one.took_s for one in apart],
        "snapshot": [there for _, there in found],
        "shown": [took - there for took, there in found],
    }
    figures = {f"{what}_{name}": value for what, took in times.items() for name, value in percentiles(took).items()}
    return figures | {"max_ms": max(one.took_s for one in events) * 1000}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
