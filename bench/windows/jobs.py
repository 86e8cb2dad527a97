"""The jobs that count: how each is started, when it publishes a count, and where the count is in it."""

import sys
from dataclasses import dataclass

from bench.harness.jobs import FLINK, KSTREAMS, OURS, STATE_BATCH, Job, jvm, state_job
from contracts import Emit


@dataclass(frozen=True)
class WindowJob(Job):
    """A job that counts the events of each key in each hour. Its command and its environment may say {backlog}."""

    emit: Emit = Emit.EVENT
    key: str = "device_id"
    """The paths, with dots, of the key in a published count,"""
    start: str = "first_seen"
    """of the start of its window,"""
    count: str = "state.count"
    """and of the number of events."""


def _ours(name: str, emit: Emit) -> WindowJob:
    environment = state_job(f"bench.windows.application:{{backlog}}_{emit.value}")
    return WindowJob(name, (sys.executable, "-m", "spark_app"), environment, STATE_BATCH, emit=emit)


def _peer(peer: str, main: str, emit: Emit) -> WindowJob:
    """Its class takes the prefix of its topics and when to publish, too."""
    command = jvm(peer, main, "{boot}", "{run}", "{checkpoint}", "{backlog}.", emit.value)
    return WindowJob(
        f"{peer}-{emit.value}", command, peer=peer, emit=emit, key="key", start="window_start", count="count"
    )


STATELOOP_EVENT = _ours(OURS, Emit.EVENT)
STATELOOP_BATCH = _ours(f"{OURS}-batch", Emit.BATCH)
FLINK_EVENT = _peer(FLINK, "CountJob", Emit.EVENT)
FLINK_CLOSE = _peer(FLINK, "CountJob", Emit.CLOSE)
KSTREAMS_EVENT = _peer(KSTREAMS, "KsCount", Emit.EVENT)
KSTREAMS_CLOSE = _peer(KSTREAMS, "KsCount", Emit.CLOSE)
WINDOW_JOBS = (STATELOOP_EVENT, STATELOOP_BATCH, FLINK_EVENT, FLINK_CLOSE, KSTREAMS_EVENT, KSTREAMS_CLOSE)
