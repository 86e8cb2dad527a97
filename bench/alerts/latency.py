"""How late an alert is: from the sending of the event with which it opens or closes to its record on the topic.

An event's time is that at which it is handed to the client; a record's is the broker's clock when it is appended, in
whole milliseconds.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import override

from bench.alerts.application import Limit
from bench.alerts.jobs import ALERT_JOBS, ALERTS, TOPICS, AlertJob, RunningAlertJob
from bench.alerts.oracle import Transition, check, decode, transitions
from bench.alerts.rules import RuleWriter
from bench.harness import topics
from bench.harness.background import Background
from bench.harness.errors import JobStalledError
from bench.harness.figures import Figures, percentile, percentiles
from bench.harness.load import Fleet, Sent, steady
from bench.harness.measure import Measure, Meter, Show, Site
from bench.harness.results import OracleReport
from bench.harness.topics import SNAPSHOTS
from bench.yardstick.oracle import SnapshotDecoder

PATIENCE_S, LAST_S = 240.0, 120.0
SWING = 14.0
"""A change that one event in twenty makes: the temperatures differ by 7 from one another (the standard deviation)."""
Times = Mapping[tuple[str, int], float]
"""In seconds of the epoch, by device and number of the event."""


@dataclass(frozen=True)
class AlertStream(Measure[AlertJob]):
    """Events at a steady rate, a second, and one rule: how late the alerts are that open and close."""

    rate: int
    seconds: int
    warm_s: int
    devices: int = 2_000
    jobs = ALERT_JOBS

    def __str__(self) -> str:
        return f"{self.rate:,} events/s of {self.devices:,} devices for {self.seconds} s"

    @override
    def meter(self, site: Site) -> "AlertLatency":
        return AlertLatency(self, site)


class AlertLatency(Meter[AlertJob]):
    """Measures one job at a time; each has its own events."""

    def __init__(self, stream: AlertStream, site: Site) -> None:
        self._stream, self._site = stream, site

    @override
    def measure(self, job: AlertJob, name: str, show: Show) -> tuple[Figures, OracleReport]:
        stream, boot = self._stream, self._site.boot
        topics.renew(boot, *TOPICS)
        RuleWriter(boot).put("swing", Limit(change=SWING))
        with (
            Background(steady, boot, stream.rate, Fleet(stream.devices)) as load,
            RunningAlertJob(job, self._site, name, with_states=True) as running,
            topics.Counter(boot, ALERTS) as counter,
        ):
            running.until(lambda: counter.count() > 0, "alert", PATIENCE_S)
            show(f"warming up for {stream.warm_s} s")
            running.wait(stream.warm_s)
            show(f"measuring for {stream.seconds} s")
            begin, used = time.time(), running.cpu_s()
            running.wait(stream.seconds)
            end, cores = time.time(), (running.cpu_s() - used) / stream.seconds
            sent = load.finish()
            expected = list(transitions((event.reading for event in sent), SWING))
            with suppress(JobStalledError):  # what is missing then, the oracle finds
                running.until(lambda: counter.count() >= len(expected), "last alerts", LAST_S)
            running.wait(self._site.settle_s)
        show("checking every alert")
        sent = [event for event in sent if event.at >= begin]  # before, a rule may have come after events
        since = {(event.reading.device, event.reading.number): event.at for event in sent}
        published = [(at, alert.transition) for at, value in topics.records(boot, ALERTS) for alert in decode(value)]
        alerts = [(at, transition) for at, transition in published if transition[:2] in since]
        expected = [transition for transition in expected if transition[:2] in since]
        report = check(expected, (transition for _, transition in alerts))
        measured = [(at, transition) for at, transition in alerts if since[transition[:2]] < end]
        evaluated = _latencies(measured, self._published() if job.states else since)
        return _latencies(measured, since) | _lateness(sent) | {
            "evaluated_p50_ms": evaluated["p50_ms"],
            "evaluated_p99_ms": evaluated["p99_ms"],
            "cores": cores,
        }, report

    def _published(self) -> Times:
        """The time of each snapshot on its topic."""
        reader, published = SnapshotDecoder("state.events"), dict[tuple[str, int], float]()
        for at, value in topics.records(self._site.boot, SNAPSHOTS):
            if (read := reader.read(value)) is not None:
                published.setdefault((read.device, read.events), at)
        return published


def _latencies(alerts: list[tuple[float, Transition]], since: Times) -> Figures:
    return percentiles([at - since[transition[:2]] for at, transition in alerts])


def _lateness(sent: list[Sent]) -> Figures:
    return {"late_p99_ms": 1000 * percentile(sorted(event.at - event.due for event in sent), 0.99)}
