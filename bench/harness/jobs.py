"""A job that is measured: how it is started, and from which checkout."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

CHECKOUT = Path(__file__).parents[2]
OURS = "stateloop"
"""The name of our job in each measure: it has targets, and is compared with the others."""
BEFORE = "before"
"""The name of our job from another checkout."""
MARK = Path("bench", "yardstick", "application.py")
"""A file that each checkout has, from which our jobs can be started."""


@dataclass(frozen=True)
class Job:
    """How a job is started.

    It finds the broker in BOOT and an empty folder for its checkpoint in CKPT. Its command and its environment may say
    {boot}, {checkpoint}, {scratch} (for files that need not last), {run} (a name that no other run has), {java},
    {jars} (the folder of the Kafka connector's jars) and {peers} (the folder of the peers).
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    batch: dict[str, str] = field(default_factory=dict)
    """Further variables of the environment if the length of batches is set: {batch_s}, in seconds."""
    peer: str | None = None
    """The peers that must be built for it."""
    programs: tuple[str, ...] = ()
    """The programs that must be installed for it."""
    is_usual: bool = True
    """Whether it is measured if no jobs are named."""
    folder: Path = CHECKOUT
    """The checkout from which it runs."""

    def in_checkout(self, folder: Path) -> Self:
        """Return the same job from another checkout, named `before`."""
        return replace(self, name=BEFORE, folder=folder)


def state_job(application: str) -> dict[str, str]:
    """The environment of our job with this application."""
    return {
        "STATELOOP_APPLICATION": application,
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_CHECKPOINT": "{checkpoint}",
        "STATELOOP_CATCH_UP": "false",
        "STATELOOP_JARS": "{jars}/..",
        "STATELOOP_DRIVER_MEMORY": "3g",
    }


STATE_BATCH = {"STATELOOP_BATCH": "PT{batch_s}S"}
FLINK, KSTREAMS = "flink", "kstreams"
"""The peers in Java."""
COORDINATOR = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"
OPTIONS = {
    FLINK: (
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.nio", "java.util", "sun.nio.ch")),
        f"-Dorg.slf4j.simpleLogger.log.{COORDINATOR}=info",
    ),
    KSTREAMS: (),
}


def jvm(peer: str, main: str, *arguments: str, heap: str = "3g", options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command of a peer's class in a JVM of its own."""
    java = ("{java}", f"-Xms{heap}", f"-Xmx{heap}", "-Djava.io.tmpdir={scratch}")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    classes = ("-cp", f"{{peers}}/{peer}/classes:{{peers}}/{peer}/*")
    return (*java, quiet, *OPTIONS[peer], *options, *classes, main, *arguments)
