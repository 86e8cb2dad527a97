"""The settings of the topics' maker."""

from datetime import timedelta

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, STATELOOP_PARTITIONS, and so on."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_", frozen=True)

    application: str
    """The application, as package.module:name."""
    kafka: str = "127.0.0.1:9092"
    partitions: int = Field(default=4, ge=1)
    """Of each topic: how far the job and the workers can be spread. Changing it takes a new checkpoint."""
    replication: int = Field(default=1, ge=1)
    patience: timedelta = timedelta(seconds=60)
    """How long to wait for a broker."""
