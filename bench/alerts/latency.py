"""How late an alert is: from the sending of the event with which it opens or closes to its record on the topic.

An event's time is that at which it is handed to the client; a record's is the broker's clock when it is appended, in
whole milliseconds.
"""

import time

from bench.alerts.application import Limit
from bench.alerts.engines import ALERTS, ENGINES, SNAPSHOTS, TOPICS
from bench.alerts.measures import SWING, AlertStream
from bench.alerts.oracle import Transition, check, decode, transitions
from bench.alerts.rules import RuleWriter
from bench.alerts.running import RunningEngine
from bench.harness import topics
from bench.harness.background import Background
from bench.harness.figures import Figures, percentile, percentiles
from bench.harness.jobs import Job
from bench.harness.load import Sent, steady
from bench.harness.oracle import SnapshotDecoder
from bench.harness.plan import Plan, Site
from bench.harness.progress import Show
from bench.harness.results import RunResult

PATIENCE_S = 240.0
RULE = "swing"
SNAPSHOT = SnapshotDecoder(Job("stateloop", (), count="state.events"))


class AlertLatency:
    """Measures one engine at a time; each has its own events."""

    def __init__(self, stream: AlertStream, plan: Plan, site: Site) -> None:
        self._stream, self._plan, self._site = stream, plan, site

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one engine. Raises RunFailedError."""
        stream, boot, engine = self._stream, self._site.boot, ENGINES[job.name]
        topics.renew(boot, TOPICS)
        RuleWriter(boot).put(RULE, Limit(change=SWING))
        name = f"{stream.name}-{job.name}-{run}"
        with (
            Background(steady, boot, stream.rate, stream.fleet()) as load,
            RunningEngine(engine, engine.processes, self._plan, self._site, name) as running,
            topics.Counter(boot, ALERTS) as counter,
        ):
            show("starting", 0.0)
            running.until(lambda: counter.count() > 0, "alert", PATIENCE_S)
            show("warming up", 0.2)
            running.wait(stream.warm_s)
            begin, before = time.time(), running.cpu_s()
            show("measuring", 0.4)
            running.wait(stream.seconds)
            end, cores = time.time(), (running.cpu_s() - before) / stream.seconds
            sent = load.finish()
            expected = list(transitions((one.reading for one in sent), SWING))
            since = {(one.reading.device, one.reading.number): one.at for one in sent if one.at >= begin}
            late = [one for one in expected if (one.device, one.number) in since]
            running.until(
                lambda: counter.count() >= len(expected), "last alerts", self._plan.settle_s * 5, is_required=False
            )
            running.wait(self._plan.settle_s)
        show("checking every alert", 1.0)
        alerts = [(at, one.transition) for at, value in topics.records(boot, ALERTS) for one in decode(value)]
        alerts = [one for one in alerts if one[1][:2] in since]  # before, a rule may have come after events
        report = check(late, (one for _, one in alerts))
        measured = [one for one in alerts if since[one[1][:2]] < end]
        figures = self._figures(measured, since, sent, engine.reads == SNAPSHOTS) | {"cores": cores}
        return RunResult(stream.name, job.name, run, figures, report, size=self._plan.size(stream))

    def _figures(
        self,
        alerts: list[tuple[int, Transition]],
        since: dict[tuple[str, int], float],
        sent: list[Sent],
        has_snapshots: bool,  # noqa: FBT001  # an engine has them or not
    ) -> Figures:
        """From the event to the alert, and from the record on which the rule was evaluated to the alert."""
        figures = percentiles([at / 1000 - since[one.device, one.number] for at, one in alerts])
        evaluated = figures
        if has_snapshots:
            published = dict[tuple[str, int], float]()
            for at, value in topics.records(self._site.boot, SNAPSHOTS):
                if (read := SNAPSHOT.read(value)) is not None:
                    published.setdefault((read.device, read.events), at / 1000)
            evaluated = percentiles([at / 1000 - published[one.device, one.number] for at, one in alerts])
        late = sorted(one.at - one.due for one in sent if (one.reading.device, one.reading.number) in since)
        return figures | {
            "evaluated_p50_ms": evaluated["p50_ms"],
            "evaluated_p99_ms": evaluated["p99_ms"],
            "late_p99_ms": 1000 * percentile(late, 0.99),
        }
