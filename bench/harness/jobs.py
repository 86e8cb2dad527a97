"""The jobs that are measured. Another one is another entry here: how it is started, and how its snapshots are read."""

import sys
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """A job that reads `events` and `feedback` and writes `snapshots`, two partitions each.

    It finds the broker in BOOT and an empty folder for its checkpoint in CKPT. Its command and its environment may say
    {boot}, {checkpoint}, {scratch} (for files that need not last), {run} (a name that no other run has), {java},
    {jars} (the folder of the Kafka connector's) and {peers} (that of the peers).
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    batch: dict[str, str] = field(default_factory=dict)
    """Further variables of the environment if the plan sets the length of batches: {batch_s}, in seconds."""
    peer: str | None = None
    """The peers that must be built for it."""
    device: str = "device_id"
    """The path of the device in a snapshot, with dots."""
    count: str = "events"
    """The path of the count of events. The state's other fields are next to it."""
    commits: str | None = None
    """The files that appear in the checkpoint whenever a batch ends, as a glob. None: it has no batches."""
    in_order: bool = True
    """Whether a device's events are merged in the order in which they were sent, so that each snapshot is known
    beforehand, and not only a device's last one."""


SPARK_COMMITS = "commits/[0-9]*"
STATELOOP = Job(
    name="stateloop",
    command=("make", "-s", "yardstick-job"),
    batch={"STATELOOP_BATCH": "PT{batch_s}S"},
    count="state.events",
    commits=SPARK_COMMITS,
)
EXACT = Job(
    name="exact",
    command=STATELOOP.command,
    environment={"YARDSTICK": "exact"},
    batch=STATELOOP.batch,
    count=STATELOOP.count,
    commits=SPARK_COMMITS,
    in_order=False,  # events are first spread by their ids, to find duplicates
)
"""Ours with each event counted once, however often it is delivered: more than the others do."""
BARE = Job(
    name="bare",
    command=(sys.executable, "-m", "bench.bare.job"),
    environment={"JARS": "{jars}"},
    batch={"BATCH": "{batch_s} seconds"},
    commits=SPARK_COMMITS,
)

OPEN = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "nio", "util"))
COORDINATOR = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"


def _jvm(peer: str, main: str, *options: str) -> Job:
    """A peer: a JVM of the size of ours. Its class takes the broker, a group's name and a folder for its state."""
    java = ("{java}", "-Xms3g", "-Xmx3g", "-Djava.io.tmpdir={scratch}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
    classes = ("-cp", f"{{peers}}/{peer}/classes:{{peers}}/{peer}/*")
    return Job(peer, (*java, *options, *classes, main, "{boot}", "{run}", "{checkpoint}"), peer=peer)


FLINK = _jvm(
    "flink",
    "FlinkJob",
    *OPEN,
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    f"-Dorg.slf4j.simpleLogger.log.{COORDINATOR}=info",
)
KSTREAMS = _jvm("kstreams", "KsJob")

JOBS = (STATELOOP, FLINK, KSTREAMS, BARE, EXACT)
MEASURED = STATELOOP
"""The job that has targets, and is compared with the others."""
USUAL = (STATELOOP, FLINK, KSTREAMS, BARE)
"""Those that are measured if nothing else is said."""
