"""The job's settings."""

from datetime import timedelta
from pathlib import Path
from typing import Self

from pydantic import Field

from contracts.model.application import Application
from contracts.model.emit import Emit
from contracts.model.suite import Suite
from contracts.settings import Duration, EndpointSettings


class JobSettings(EndpointSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, and so on."""

    checkpoint: str = ".stateloop/checkpoint"
    """A folder of any file system that Spark writes to. It belongs to this job alone. Each application of a suite has
    a folder of its name in it; raw sources have theirs next to it, in `<checkpoint>-raw`."""
    batch: Duration = timedelta(minutes=5)
    """The length of a batch in real-time mode. It bounds what is published again after a crash; between batches
    the job processes nothing. A query that emits at intervals has those instead."""
    jars: Path = Path(".stateloop/jars")
    """The folder of the jars, of which `spark` has the Kafka connector's; spark-submit brings its own instead."""
    driver_memory: str = "2g"
    java_options: str = "-XX:+UseParallelGC -XX:-DontCompileHugeMethods"
    """Options of the JVM. This collector takes a sixth less CPU than the default one: long-lived data is in RocksDB.
    Spark generates long methods for a wide state, which Java would otherwise interpret for ever."""
    class_archive: Path | None = None
    """A file of the classes that the job loads, from which the first snapshot comes some three seconds sooner. Where
    there is none, a job that is stopped in order writes it, and takes a quarter of a minute longer to end. Unset, the
    job uses `classes.jsa` in the folder of the jars, if `python -m spark_app.class_archive` has made it."""
    catch_up: bool = True
    """Read a long backlog, or any with a new checkpoint, in one micro-batch before going live: it publishes the newest
    snapshot of each window. Without it the job publishes one for each record; in a replay it may lose late ones."""
    give_up: Duration = timedelta(minutes=5)
    """The time for which a failing query is restarted without progress before its application gives up. While other
    applications of the suite run, it starts again after the same time; when all have given up, the driver stops."""
    log_level: str = "WARN"
    state_partitions: int | None = Field(default=None, ge=1)
    """The partitions of the state; by default as many as the topic of events. A checkpoint has a fixed number."""

    def by_application(self, suite: Suite) -> list[tuple[Application, Self]]:
        """Return the settings of each application: several of them have a folder each for the checkpoint."""
        if len(suite.applications) == 1:
            return [(suite.applications[0], self)]
        folder = self.checkpoint.rstrip("/")
        return [(application, self.at(f"{folder}/{application.name}")) for application in suite.applications]

    def at(self, checkpoint: str) -> Self:
        """Return these settings with another checkpoint."""
        return self.model_copy(update={"checkpoint": checkpoint})

    def batch_of(self, application: Application) -> timedelta:
        """Return how long a batch of the application's query lasts."""
        return self.batch if application.emit is Emit.EVENT else application.emit_interval
