"""A request: one planned answer of an enrichment, for one window of one device."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from contracts.model.budget import Budget
from contracts.wire import Order


@dataclass(frozen=True)
class Request:
    """One planned answer: window, enrichment and fingerprint of its inputs, and the version that it was planned on."""

    device_id: str
    first_seen: datetime
    enrichment: str
    fingerprint: str
    version: int
    as_of: datetime
    inputs: dict[str, Any]
    """The inputs as they are on the wire."""
    skipped: str | None = None
    """The reason for an answer without a call, if there is one. The fingerprint is then the reason's."""
    traceparent: str | None = None
    """The trace context of the snapshot."""
    round: int = 1
    """The round of an iterative enrichment."""
    spent: int | None = None
    """The requests of the enrichment in the budget's period, this one included; None without a budget."""
    counted_at: datetime | None = None
    """When `spent` was counted."""
    epoch: int = 0
    """With `version`, the snapshot that it was planned on."""
    alias: str | None = None
    """The first name of the enrichment, if it was renamed."""

    def charged(self, budget: Budget | None, at: datetime) -> Self:
        """Return the request with its count for an answer of this time: none if it was counted in another period."""
        if budget is None or self.counted_at is None:
            return self
        period, answered = (budget.period(self.first_seen, time) for time in (self.counted_at, at))
        return self if period == answered else replace(self, spent=None)

    @property
    def recorded_as(self) -> str:
        """The name of the enrichment in its feedback and dead letter."""
        return self.alias or self.enrichment

    @property
    def window(self) -> tuple[str, datetime]:
        """Device and start of the window: the key of the state."""
        return self.device_id, self.first_seen

    @property
    def order(self) -> Order:
        """The order of its answer in the slot."""
        return self.epoch, self.version

    @property
    def coalescing_key(self) -> tuple[str, datetime, str]:
        """The window and the enrichment. Of the requests with one coalescing key only the latest is necessary."""
        return self.device_id, self.first_seen, self.enrichment

    @property
    def identity(self) -> tuple[str, datetime, str, str]:
        """The coalescing key and the fingerprint. One of several requests with the same identity is enough."""
        return self.device_id, self.first_seen, self.enrichment, self.fingerprint
