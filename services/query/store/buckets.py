"""Time buckets: expired windows are deleted one bucket at a time, never key by key."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState

SLOTS = 3
"""The number of buckets at a time, each with its databases; small, because a lookup may search each of them."""

MIN_WINDOW_START = -(1 << 63)
"""Earlier than every window."""
REMEMBER_WINDOWS = timedelta(days=1)
"""By default closed windows of a windowed state can be read for so long."""


class TimeBuckets(NamedTuple):
    """Maps windows to buckets, and finds the buckets that are still remembered. In milliseconds; 0: no expiry."""

    lifetime: int
    """From a window's start until it has expired. A window of a windowed state expires when it is not remembered."""
    remembered: int
    """From a window's start until its entries may be deleted."""
    window: int = 0
    """The size of the windows; 0 in a state that is not windowed."""
    lateness: int = 0
    """How far a record moves the watermark behind the start of its window: late records of earlier ones may follow."""

    @property
    def width(self) -> int:
        """Half of the time from the oldest to the newest window, so that these overlap at most SLOTS buckets."""
        return -(-(self.remembered + self.lateness) // (SLOTS - 1))

    def of(self, window_start: int) -> int:
        """Return the bucket of a window."""
        return window_start // self.width if self.remembered else 0

    def oldest(self, watermark: int) -> int:
        """Return the first bucket that is still remembered in part."""
        return (watermark - self.remembered) // self.width if self.remembered else 0

    def is_expired(self, window_start: int, watermark: int) -> bool:
        """Return whether a window has expired."""
        return window_start < self.oldest_live_window(watermark)

    def oldest_live_window(self, watermark: int) -> int:
        """Return the start of the oldest window that has not expired."""
        return watermark - self.lifetime if self.lifetime else MIN_WINDOW_START

    def is_stored(self, window_start: int, watermark: int) -> bool:
        """Return whether a record of this window is stored: expired windows of a windowed state are not read again."""
        return self.of(window_start) >= self.oldest(watermark) and not (
            self.window and self.is_expired(window_start, watermark)
        )

    def closed_before(self, watermark: int) -> int:
        """Return the start of the first window of a windowed state that is not closed by this watermark."""
        return watermark - self.window + 1

    def is_bucket_expired(self, bucket: int, watermark: int) -> bool:
        """Return whether all windows of a bucket have expired."""
        return self.remembered > 0 and self.is_expired((bucket + 1) * self.width - 1, watermark)


def time_buckets(state: NamedState) -> TimeBuckets:
    """Return the buckets of a state. By default a window is remembered for one lifetime after its expiry."""
    if state.window is not None:
        remember = REMEMBER_WINDOWS if state.query.remember is None else state.query.remember
        kept = milliseconds(state.window + remember)
        return TimeBuckets(kept, kept, milliseconds(state.window), milliseconds(state.grace))
    if state.lifetime is None or state.window_start is None:
        return TimeBuckets(0, 0)
    remember = state.lifetime if state.query.remember is None else state.query.remember
    return TimeBuckets(milliseconds(state.lifetime), milliseconds(state.lifetime + remember))


def clock_watermark(state: NamedState, now: int) -> int | None:
    """Return the watermark by the clock; None for a state whose windows do not expire by the clock.

    It is behind the clock by the grace, within which a state still accepts late records.
    """
    if not state.expires_by_clock or state.lifetime is None or state.window_start is None:
        return None
    return now - milliseconds(state.grace)


def complete_watermark(state: NamedState, time: int) -> int:
    """Return the watermark by which windows are closed once all records that arrived before a time are read.

    With `emits_closed`, the time is the start of the first window that may still change.
    """
    if state.emits_closed:
        return time - 1 + (0 if state.window is None else milliseconds(state.window))
    return time - milliseconds(state.grace)


def milliseconds(span: timedelta) -> int:
    """Return a span in milliseconds."""
    return round(span.total_seconds() * 1000)
