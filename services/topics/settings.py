"""The settings of the topics' maker."""

from datetime import timedelta

from pydantic import Field

from contracts.settings import Duration, KafkaSettings


class Settings(KafkaSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, STATELOOP_PARTITIONS, and so on."""

    application: str
    """The application, as package.module:name."""
    partitions: int | None = Field(default=None, ge=1)
    """Of each topic, instead of what the application says. Changing it takes a new checkpoint."""
    replication: int = Field(default=1, ge=1)
    patience: Duration = timedelta(seconds=60)
    """How long to wait for a broker."""
