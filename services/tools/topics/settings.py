"""The settings of the topics command."""

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from contracts.settings import ApplicationSettings, Duration


class TopicsSettings(ApplicationSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, STATELOOP_PARTITIONS, and so on."""

    partitions: int | None = Field(default=None, ge=1)
    """The number of partitions of each topic, in place of the application's. `stateloop rebuild` adds partitions."""
    replication: int = Field(default=1, ge=1)
    """The number of replicas of each topic. Unset, a topic is created with one replica, and a warning."""
    min_insync_replicas: int | None = Field(default=None, ge=1)
    """The number of replicas that must have a record before it is acknowledged; unset, 2 of 3 or more, 1 of fewer."""
    patience: Duration = timedelta(seconds=10)
    """The timeout of the wait for a broker."""
    take_over: bool = False
    """Make this application the owner of its output topics, also of those that another application owns. Set it for one
    run, after the other application was stopped for good."""

    @property
    def insync(self) -> int:
        """The topics' min.insync.replicas. Of three replicas one may fail: no record is lost, the loop continues."""
        return self.min_insync_replicas or max(1, min(2, self.replication - 1))

    @model_validator(mode="after")
    def _check_replicas(self) -> Self:
        """A topic with fewer replicas than must be in sync accepts no record."""
        if self.insync > self.replication:
            raise ValueError("STATELOOP_MIN_INSYNC_REPLICAS must not be more than STATELOOP_REPLICATION")
        return self
