"""The live view's settings, read from the environment."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class LiveSettings(BaseSettings):
    """One view: STATELOOP_APPLICATION, STATELOOP_KAFKA, and so on."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_", frozen=True, extra="ignore")

    application: str
    """Where the application is: package.module:name."""
    kafka: str = "127.0.0.1:9092"
    """The brokers, as host:port, separated by commas."""
    group: str | None = None
    """The workers' consumer group; `<application's name>-enrichment` unless set."""
    status: Path | None = None
    """The launcher's file on what each part does now."""
    logs: Path | None = None
    """The folder of the launcher's logs, where the workers count their calls."""
    window: timedelta = timedelta(seconds=10)
    """Rates and latencies are those of this long, up to now."""
    line_every: timedelta = timedelta(seconds=5)
    """How often a line is printed when the output is no terminal."""
    history: int = Field(default=25, ge=0)
    """How many old snapshots of each partition are shown at the start."""
    remember: int = Field(default=100_000, ge=1)
    """How many lives are remembered at the most, to measure latencies."""
