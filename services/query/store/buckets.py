"""Time, cut into buckets: a state whose lives end is forgotten a whole bucket at a time, never key by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import timedelta

    from contracts.model.named_state import NamedState

SLOTS = 3
"""How many buckets there are at a time, and so databases in turn: few, for a key has to be looked for in each."""


ALWAYS = -(1 << 63)
"""Before every life."""


class Buckets(NamedTuple):
    """Which bucket a life is in, and which are still remembered. In milliseconds; 0: lives do not end."""

    lifetime: int
    remembered: int
    """From a life's beginning until it may be forgotten."""

    @property
    def width(self) -> int:
        """Half of what is remembered, so that at most SLOTS buckets are, wherever the watermark is."""
        return -(-self.remembered // (SLOTS - 1))

    def of(self, life: int) -> int:
        """The bucket of a life that began then."""
        return life // self.width if self.remembered else 0

    def oldest(self, watermark: int) -> int:
        """The first bucket of which something is still remembered."""
        return (watermark - self.remembered) // self.width if self.remembered else 0

    def ended(self, life: int, watermark: int) -> bool:
        """Whether a life that began then has ended."""
        return life < self.living_since(watermark)

    def living_since(self, watermark: int) -> int:
        """The earliest life that has not ended."""
        return watermark - self.lifetime if self.lifetime else ALWAYS

    def over(self, bucket: int, watermark: int) -> bool:
        """Whether all lives of a bucket have ended."""
        return self.remembered > 0 and self.ended((bucket + 1) * self.width - 1, watermark)


def buckets(state: NamedState) -> Buckets:
    """Those of a state: it is remembered for another lifetime, if it does not say for how long."""
    if state.lifetime is None or state.life is None:
        return Buckets(0, 0)
    remember = state.lifetime if state.query.remember is None else state.query.remember
    return Buckets(_ms(state.lifetime), _ms(state.lifetime + remember))


def clock_watermark(state: NamedState, now: int) -> int | None:
    """The watermark that the clock gives: a life ends `lifetime` before it. None where lives do not end by the clock.

    Later than a beginning by the grace, within which a state still takes records.
    """
    if not state.expires_by_clock or state.lifetime is None or state.life is None:
        return None
    return now - _ms(state.grace)


def _ms(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)
