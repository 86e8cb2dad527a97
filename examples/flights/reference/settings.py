"""The reference server's settings, read from the environment."""

from pydantic import Field

from examples.serving import ServerSettings


class ReferenceSettings(ServerSettings):
    """The address of the server, and its faults."""

    latency_ms: float = Field(default=0, ge=0, description="added to each answer")
    rate_limit: float = Field(default=0, ge=0, description="calls per second, beyond which it is 429; 0 for no limit")
    failure_rate: float = Field(default=0, ge=0, lt=1, description="the share of calls that end in 503")
    seed: int = Field(default=0, description="decides which calls fail")
