"""The jobs that raise alerts: their processes, and the topics that they read and write."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from typing_extensions import override

from bench.harness.jobs import FLINK, OURS, STATE_BATCH, Job, jvm, state_job
from bench.harness.measure import Site
from bench.harness.process import RunningJob
from bench.harness.topics import EVENTS, FEEDBACK, SNAPSHOTS

RULES, ALERTS = "limits", "changes"
TOPICS = (EVENTS, FEEDBACK, SNAPSHOTS, "dead_letters", RULES, ALERTS)
APPLICATION = "bench.alerts.application:app"


@dataclass(frozen=True)
class AlertJob(Job):
    """A job that evaluates rules on records. Its consumer group is the name of the run."""

    reads: str = EVENTS
    """The topic of these records."""
    states: Job | None = None
    """The job that writes them."""

    @override
    def in_checkout(self, folder: Path) -> Self:
        states = self.states and self.states.in_checkout(folder)
        return replace(super().in_checkout(folder), states=states)


STATELOOP_ALERTS = AlertJob(
    OURS,
    (sys.executable, "-m", "services.derive"),
    {"STATELOOP_APPLICATION": APPLICATION, "STATELOOP_KAFKA": "{boot}", "STATELOOP_GROUP": "{run}"},
    reads=SNAPSHOTS,
    states=Job(
        "stateloop-job",
        (sys.executable, "-m", "spark_app"),
        state_job(APPLICATION) | {"STATELOOP_BATCH": "PT60S"},
        STATE_BATCH,
    ),
)
FLINK_ALERTS = AlertJob("flink-alerts", jvm(FLINK, "AlertJob", "{boot}", "{run}", "{checkpoint}"), peer=FLINK)
ALERT_JOBS = (STATELOOP_ALERTS, FLINK_ALERTS)


class RunningAlertJob(RunningJob):
    """A job that evaluates rules, and the one that writes the records for it, if there is one."""

    def __init__(self, job: AlertJob, site: Site, name: str, *, with_states: bool) -> None:
        self._states = RunningJob(job.states, site, f"{name}-states") if job.states and with_states else None
        super().__init__(job, site, name)

    @override
    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._states:
            self._states.__exit__()

    @override
    def cpu_s(self) -> float:
        return super().cpu_s() + (self._states.cpu_s() if self._states else 0.0)

    @override
    def require_running(self) -> None:
        super().require_running()
        if self._states:
            self._states.require_running()
