"""The jobs that do the yardstick's work: how each is started, and how its snapshots are read."""

import sys
from dataclasses import dataclass, replace

from bench.harness.jobs import FLINK, KSTREAMS, OURS, STATE_BATCH, Job, jvm, state_job

COMMITS = "commits/[0-9]*"
"""The files that appear in the checkpoint of a Spark job whenever a batch ends."""
PLACES = ("{boot}", "{run}", "{checkpoint}")
"""The arguments of a peer's class: the broker, a group's name and a folder for its state."""


@dataclass(frozen=True)
class StateJob(Job):
    """A job that reads `events` and `feedback` and writes `snapshots`, two partitions each."""

    count: str = "events"
    """The path of the count of events in a snapshot, with dots. The state's other fields are next to it."""
    commits: str | None = None
    """The files that appear in the checkpoint whenever a batch ends, as a glob. None: it has no batches."""
    in_order: bool = True
    """Whether a device's events are merged in the order in which they were sent, so that each snapshot is known
    beforehand, and not only a device's last one."""


STATELOOP = StateJob(
    OURS,
    (sys.executable, "-m", "bench.yardstick"),
    state_job("bench.yardstick.application:app"),
    STATE_BATCH,
    count="state.events",
    commits=COMMITS,
)
EXACT = replace(
    STATELOOP,
    name="exact",
    environment=state_job("bench.yardstick.application:exact"),
    is_usual=False,
    in_order=False,  # events are first spread by their ids, to find duplicates
)
"""Ours with each event counted once, however often it is delivered: more than the others do."""
FLINK_STATE = StateJob(FLINK, jvm(FLINK, "FlinkJob", *PLACES), peer=FLINK)
KSTREAMS_STATE = StateJob(KSTREAMS, jvm(KSTREAMS, "KsJob", *PLACES), peer=KSTREAMS)
STATE_JOBS = (STATELOOP, FLINK_STATE, KSTREAMS_STATE, EXACT)
