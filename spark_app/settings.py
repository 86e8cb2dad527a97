"""The job's settings."""

from datetime import timedelta
from pathlib import Path

from pydantic import Field

from contracts.settings import Duration, KafkaSettings


class JobSettings(KafkaSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, and so on."""

    application: str
    """The application to run, as package.module:name."""
    checkpoint: str = ".stateloop/checkpoint"
    """A folder of any file system that Spark writes to. It belongs to this job alone."""
    batch: Duration = timedelta(minutes=5)
    """How long one batch lasts. It bounds what is published again after a crash; between batches nothing flows."""
    jars: Path = Path(".stateloop/jars")
    """The folder of the jars, of which `spark` has the Kafka connector's; spark-submit brings its own instead."""
    driver_memory: str = "2g"
    java_options: str = "-XX:+UseParallelGC -XX:-DontCompileHugeMethods"
    """For the JVM. This collector takes a sixth less CPU than the default one: what lives long is in RocksDB. And what
    Spark generates for a wide state is in methods that Java would otherwise interpret for ever."""
    class_archive: Path | None = None
    """A file of the classes that the job loads, from which the first snapshot comes some three seconds sooner. Where
    there is none, a job that is stopped in order writes it, and takes a quarter of a minute longer to end."""
    catch_up: bool = True
    """Read a long backlog, or any with a new checkpoint, in one micro-batch before going live: it publishes the newest
    snapshot of each window. Without it the job publishes one for each record, and may lose late ones."""
    give_up: Duration = timedelta(minutes=5)
    """How long a failing query is restarted without progress before the driver ends."""
    log_level: str = "WARN"
    state_partitions: int | None = Field(default=None, ge=1)
    """How many partitions the state has; by default as many as the topic of events. A checkpoint has a fixed number."""
    http_host: str = "127.0.0.1"
    """The address at which /healthz, /readyz and /metrics answer; in a container, 0.0.0.0."""
    http_port: int | None = Field(default=None, ge=0, le=65535)
    """Their port; 0 is any free one, which the first line has. Unset, they are not served."""
