"""The jobs that are measured. Another one is another entry here: how it is started, and how its snapshots are read."""

import sys
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """A job that reads `events` and `feedback` and writes `snapshots`, two partitions each.

    It finds the broker in BOOT and an empty folder for its checkpoint in CKPT; `environment` may say {boot},
    {checkpoint}, {jars} (the Kafka connector's) and {batch_s}, as may the command.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    device: str = "device_id"
    """Where a snapshot has its device, as a path with dots."""
    count: str = "events"
    """Where it has its count of events. The state's other fields are beside that one."""
    commits: str | None = None
    """The files that appear in the checkpoint whenever a batch ends, as a glob. None: it has no batches."""
    in_order: bool = True
    """Whether a device's events are merged in the order in which they were sent, so that each snapshot is known
    beforehand, and not only a device's last one."""
    once: bool = False
    """Measured once, and not with each of the alternated rounds."""


SPARK_COMMITS = "commits/[0-9]*"
STATELOOP = Job(
    name="stateloop",
    command=("make", "-s", "yardstick-job"),
    environment={"STATELOOP_BATCH": "PT{batch_s}S"},
    count="state.events",
    commits=SPARK_COMMITS,
)
BARE = Job(
    name="bare",
    command=(sys.executable, "-m", "bench.bare.job"),
    environment={"BATCH": "{batch_s} seconds", "JARS": "{jars}"},
    commits=SPARK_COMMITS,
)
EXACT = Job(
    name="exact",
    command=STATELOOP.command,
    environment=STATELOOP.environment | {"YARDSTICK": "exact"},
    count=STATELOOP.count,
    commits=SPARK_COMMITS,
    in_order=False,  # events are first spread by their ids, to be told from their copies
    once=True,
)
"""Ours with each event counted once, however often it is delivered: more than the others do."""

JOBS = (STATELOOP, BARE, EXACT)
MEASURED, REFERENCE = STATELOOP, BARE
"""Whose targets are checked, and what it is compared with."""
