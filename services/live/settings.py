"""The live view's settings, read from the environment."""

from datetime import timedelta
from pathlib import Path

from pydantic import Field

from contracts.settings import Duration, KafkaSettings


class LiveSettings(KafkaSettings):
    """One view: STATELOOP_APPLICATION, STATELOOP_KAFKA, and so on."""

    application: str
    """Where the application is: package.module:name."""
    group: str | None = None
    """The workers' consumer group; `<application's name>-enrichment` unless set."""
    status: Path | None = None
    """The launcher's file on what each part does now."""
    logs: Path | None = None
    """The folder of the launcher's logs, where the workers count their calls."""
    console: str | None = None
    """The address of the query service's console, to be told."""
    window: Duration = timedelta(seconds=10)
    """Rates and latencies are those of this long, up to now."""
    line_every: Duration = timedelta(seconds=5)
    """How often a line is printed when the output is no terminal."""
    history: int = Field(default=25, ge=0)
    """How many old snapshots of each partition are shown at the start."""
    remember: int = Field(default=100_000, ge=1)
    """How many lives are remembered at the most, to measure latencies."""
