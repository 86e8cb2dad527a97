"""The jobs that count: how each is started, and when it publishes a count."""

import sys
from dataclasses import dataclass

from bench.harness.jobs import FLINK, KSTREAMS, MEASURED, Job
from contracts import Emit


@dataclass(frozen=True)
class WindowEngine:
    """A job. `start` is where a count has its window's start, as a path with dots."""

    job: Job
    emit: Emit
    start: str


def stateloop_engine(name: str, application: str, emit: Emit = Emit.EVENT, count: str = "state.count") -> WindowEngine:
    """Our job with this application, whose snapshots have the count, or the spans that it counts, at this path."""
    environment = {
        "STATELOOP_APPLICATION": application,
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_CHECKPOINT": "{checkpoint}",
        "STATELOOP_CATCH_UP": "false",
        "STATELOOP_JARS": "{jars}/..",
        "STATELOOP_DRIVER_MEMORY": "3g",
    }
    job = Job(
        name,
        (sys.executable, "-m", "spark_app"),
        environment,
        batch={"STATELOOP_BATCH": "PT{batch_s}S"},
        count=count,
    )
    return WindowEngine(job, emit, "first_seen")


def _peer(name: str, like: Job, main: str, emit: Emit) -> WindowEngine:
    """A JVM as that of a job; its main class takes the prefix of its topics and when to publish, too."""
    place = next(index for index, part in enumerate(like.command) if part == "{boot}")
    command = (*like.command[: place - 1], main, *like.command[place:], "{backlog}.", emit.value)
    return WindowEngine(Job(name, command, peer=like.peer, device="key", count="count"), emit, "window_start")


APPLICATIONS = "bench.windows.application"
STATELOOP_EVENT = stateloop_engine(MEASURED.name, f"{APPLICATIONS}:{{backlog}}_event")
STATELOOP_BATCH = stateloop_engine("stateloop-batch", f"{APPLICATIONS}:{{backlog}}_batch", Emit.BATCH)
FLINK_CLOSE = _peer("flink-close", FLINK, "CountJob", Emit.CLOSE)
FLINK_EVENT = _peer("flink-event", FLINK, "CountJob", Emit.EVENT)
KSTREAMS_CLOSE = _peer("kstreams-close", KSTREAMS, "KsCount", Emit.CLOSE)
KSTREAMS_EVENT = _peer("kstreams-event", KSTREAMS, "KsCount", Emit.EVENT)

OURS = (STATELOOP_EVENT, STATELOOP_BATCH)
PEERS = (FLINK_EVENT, FLINK_CLOSE, KSTREAMS_EVENT, KSTREAMS_CLOSE)
ENGINES = {engine.job.name: engine for engine in (*OURS, *PEERS)}
WINDOW_JOBS = tuple(one.job for one in ENGINES.values())
"""The first is ours."""
