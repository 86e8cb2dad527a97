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


def _stateloop(name: str, emit: Emit) -> WindowEngine:
    environment = {
        "STATELOOP_APPLICATION": f"bench.windows.application:{{backlog}}_{emit.value}",
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
        count="state.count",
    )
    return WindowEngine(job, emit, "first_seen")


def _peer(name: str, like: Job, main: str, emit: Emit) -> WindowEngine:
    """A JVM as that of a job; its main class takes the prefix of its topics and when to publish, too."""
    place = next(index for index, part in enumerate(like.command) if part == "{boot}")
    command = (*like.command[: place - 1], main, *like.command[place:], "{backlog}.", emit.value)
    return WindowEngine(Job(name, command, peer=like.peer, device="key", count="count"), emit, "window_start")


STATELOOP_EVENT = _stateloop(MEASURED.name, Emit.EVENT)
STATELOOP_BATCH = _stateloop("stateloop-batch", Emit.BATCH)
FLINK_CLOSE = _peer("flink-close", FLINK, "CountJob", Emit.CLOSE)
FLINK_EVENT = _peer("flink-event", FLINK, "CountJob", Emit.EVENT)
KSTREAMS_CLOSE = _peer("kstreams-close", KSTREAMS, "KsCount", Emit.CLOSE)
KSTREAMS_EVENT = _peer("kstreams-event", KSTREAMS, "KsCount", Emit.EVENT)

OURS = (STATELOOP_EVENT, STATELOOP_BATCH)
PEERS = (FLINK_EVENT, FLINK_CLOSE, KSTREAMS_EVENT, KSTREAMS_CLOSE)
ENGINES = {engine.job.name: engine for engine in (*OURS, *PEERS)}
WINDOW_JOBS = tuple(one.job for one in ENGINES.values())
"""The first is ours."""
