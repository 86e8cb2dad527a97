"""Time buckets: expired windows are deleted one bucket at a time, never key by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import timedelta

    from contracts.model.named_state import NamedState

SLOTS = 3
"""The number of buckets at a time, each with its databases; small, because a lookup may search each of them."""

MIN_WINDOW_START = -(1 << 63)
"""Earlier than every window."""


class TimeBuckets(NamedTuple):
    """Maps windows to buckets, and finds the buckets that are still remembered. In milliseconds; 0: no expiry."""

    lifetime: int
    remembered: int
    """From a window's start until its entries may be deleted."""

    @property
    def width(self) -> int:
        """Half of the remembered time, so that it overlaps at most SLOTS buckets, wherever the watermark is."""
        return -(-self.remembered // (SLOTS - 1))

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

    def is_bucket_expired(self, bucket: int, watermark: int) -> bool:
        """Return whether all windows of a bucket have expired."""
        return self.remembered > 0 and self.is_expired((bucket + 1) * self.width - 1, watermark)


def time_buckets(state: NamedState) -> TimeBuckets:
    """Return the buckets of a state. By default a window is remembered for one lifetime after its expiry."""
    if state.lifetime is None or state.window_start is None:
        return TimeBuckets(0, 0)
    remember = state.lifetime if state.query.remember is None else state.query.remember
    return TimeBuckets(_ms(state.lifetime), _ms(state.lifetime + remember))


def clock_watermark(state: NamedState, now: int) -> int | None:
    """Return the watermark by the clock; None for a state whose windows do not expire by the clock.

    It is behind the clock by the grace, within which a state still accepts late records.
    """
    if not state.expires_by_clock or state.lifetime is None or state.window_start is None:
        return None
    return now - _ms(state.grace)


def _ms(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)
