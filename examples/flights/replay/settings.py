"""The replay's settings, read from the environment."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class ReplaySettings(BaseSettings):
    """The address of the broker."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_", frozen=True)

    kafka: str = "127.0.0.1:9092"
