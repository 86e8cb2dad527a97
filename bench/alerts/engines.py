"""The engines that raise alerts: their commands, and the topics that they read and write."""

import sys
from dataclasses import dataclass

from bench.harness.jobs import FLINK, MEASURED, Job

EVENTS, SNAPSHOTS, RULES, ALERTS = "events", "snapshots", "limits", "changes"
TOPICS = (EVENTS, "feedback", SNAPSHOTS, "dead_letters", RULES, ALERTS)
_APPLICATION = {"STATELOOP_APPLICATION": "bench.alerts.application:app", "STATELOOP_KAFKA": "{boot}"}


@dataclass(frozen=True)
class AlertEngine:
    """The processes that make alerts of events. `reads` is the topic of the records that the rules are evaluated on.

    The last process evaluates the rules. Its consumer group is the name of the run.
    """

    job: Job
    processes: tuple[Job, ...]
    reads: str


STATE_JOB = Job(
    "stateloop-job",
    (sys.executable, "-m", "spark_app"),
    _APPLICATION
    | {
        "STATELOOP_CHECKPOINT": "{checkpoint}",
        "STATELOOP_CATCH_UP": "false",
        "STATELOOP_JARS": "{jars}/..",
        "STATELOOP_DRIVER_MEMORY": "3g",
        "STATELOOP_BATCH": "PT60S",
    },
    batch={"STATELOOP_BATCH": "PT{batch_s}S"},
)
DERIVE = Job(
    "stateloop-derive", (sys.executable, "-m", "services.derive"), _APPLICATION | {"STATELOOP_GROUP": "{group}"}
)
_place = next(index for index, part in enumerate(FLINK.command) if part == "{boot}")
FLINK_ALERTS = Job(
    "flink-alerts",
    (*FLINK.command[: _place - 1], "AlertJob", "{boot}", "{group}", "{checkpoint}"),
    peer=FLINK.peer,
)

STATELOOP_ALERTS = Job(MEASURED.name, ())
"""The name under which both processes are reported."""
ENGINES = {
    STATELOOP_ALERTS.name: AlertEngine(STATELOOP_ALERTS, (STATE_JOB, DERIVE), SNAPSHOTS),
    FLINK_ALERTS.name: AlertEngine(FLINK_ALERTS, (FLINK_ALERTS,), EVENTS),
}
ALERT_JOBS = tuple(one.job for one in ENGINES.values())
"""The first is ours."""
