"""What the live view shows, as frozen data: made by services.live.watch, drawn by services.live.screen and line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.live.figures import Quantiles


class Mark(StrEnum):
    """Where an enrichment of a device stands, in one character."""

    RESULT = "✓"
    ABSENCE = "–"  # noqa: RUF001  # a dash, for that is what a table has where there is nothing
    FAILURE = "✗"
    SKIPPED = "»"
    """What it needs was not found, or its condition is false."""
    OPEN = "·"
    """Waiting for what it needs, or under way."""


@dataclass(frozen=True)
class Device:
    """One row of the table."""

    device_id: str
    version: int
    age_s: float
    """Since its last snapshot arrived."""
    fields: Mapping[str, str]
    marks: Mapping[str, Mark]
    settled: bool


@dataclass(frozen=True)
class View:
    """All figures at one time. Rates are per second, lags in records, and None is unknown."""

    application: str
    kafka: str
    up_s: float
    events: float
    snapshots: float
    feedback: Mapping[str, float]
    """By status: result, absence, failure, skipped."""
    calls: Mapping[str, float] | None
    """By outcome, as the workers counted them."""
    totals: Mapping[str, int]
    to_snapshot: Quantiles | None
    to_enriched: Quantiles | None
    job_lag: int
    """Records that wait for their snapshot."""
    worker_lag: int | None
    """Snapshots that the workers have not finished."""
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """By reason, since the view began."""
    enrichments: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    """What each part of the launcher does now."""
    console: str | None = None
    """Where the console is."""
    trouble: str | None = None
    """What keeps the view itself from its data."""
