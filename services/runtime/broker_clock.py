"""The clock of the broker, as far as records show it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts.records.record import LATEST_MS

if TYPE_CHECKING:
    from collections.abc import Callable


class BrokerClock:
    """Shows the earliest time that the broker's clock can have now, by the records that the broker has stamped.

    A record is noted after the broker has stamped it, and the time since then is measured with `clock`. So it is behind
    the broker's clock, unless that was set back, or runs slower than `clock`. Without records it began in 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lead_s = -clock()
        """How far the broker's clock is ahead of `clock`, at least."""

    def note(self, timestamp_ms: int) -> None:
        """Note the timestamp of a record that the broker has stamped by now."""
        self._lead_s = max(self._lead_s, timestamp_ms / 1000 - self._clock())

    def now(self) -> datetime:
        """Return the time."""
        return datetime.fromtimestamp(min(self._clock() + self._lead_s, LATEST_MS / 1000), UTC)
