"""The clock of the broker, as far as records show it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts.records.record import Record


class BrokerClock:
    """Shows the earliest time that the broker's clock can have now, by the records that the broker has stamped.

    A record was read after the broker had stamped it, and the time since then is measured with `clock`. So it is behind
    the broker's clock, unless that was set back, or runs slower than `clock`. Without records it began in 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lead_s = -clock()
        """How far the broker's clock is ahead of `clock`, at least."""

    def note(self, record: Record) -> None:
        """Note the timestamp of a record that was read just now, or earlier."""
        self._lead_s = max(self._lead_s, record.timestamp_ms / 1000 - self._clock())

    def now(self) -> datetime:
        """Return the time."""
        return datetime.fromtimestamp(self._clock() + self._lead_s, UTC)
