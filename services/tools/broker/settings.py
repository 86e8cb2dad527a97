"""The broker's settings, read from the environment."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import Field

from contracts.settings import Duration, EnvironmentSettings


class JarsSettings(EnvironmentSettings):
    """The folder of the jars, for all commands that start a JVM."""

    jars: Path = Path(".stateloop/jars")
    """The folder of the jars: `spark` and `broker` are in it."""
    ivy_settings: Path | None = Field(default=None, description="an Ivy settings file, to use a mirror of the registry")


class BrokerSettings(JarsSettings):
    """The data folder and the port of the broker, which listens on 127.0.0.1 only."""

    broker_data: Path = Path(".stateloop/broker")
    broker_port: int = Field(default=9092, ge=1, le=65534)
    broker_heap: str = Field(default="512m", pattern=r"^\d+[kmgKMG]$")
    broker_session: Duration = Field(default=timedelta(seconds=3), ge=timedelta(seconds=1))
    """The time without a heartbeat after which the controller takes all partitions from the broker. A start after a
    kill -9 waits for it, so it is short; on a busy machine a longer one avoids a pause without a kill."""

    @property
    def controller_port(self) -> int:
        """The port after the broker's: KRaft's controller needs one of its own."""
        return self.broker_port + 1

    @property
    def bootstrap(self) -> str:
        """The address for clients, as host:port."""
        return f"127.0.0.1:{self.broker_port}"
