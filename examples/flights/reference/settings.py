"""The reference server's settings, read from the environment."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class ReferenceSettings(BaseSettings):
    """Where the server listens, and how bad an API it is."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_REFERENCE_", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8081, ge=0, le=65535)
    latency_ms: float = Field(default=0, ge=0, description="added to each answer")
    rate_limit: float = Field(default=0, ge=0, description="calls per second, beyond which it is 429; 0 for no limit")
    failure_rate: float = Field(default=0, ge=0, lt=1, description="the share of calls that end in 503")
    seed: int = Field(default=0, description="decides which calls fail")
