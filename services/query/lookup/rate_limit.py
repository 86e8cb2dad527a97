"""The rate of keys that one principal, or one address, may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachetools import LRUCache

from services.query.lookup.authentication import ANONYMOUS, PEER

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.lookup.authentication import Principal

METERS_MAX = 10_000
"""Meters kept; the least recently used one is dropped, and its principal starts with a full budget."""
BURST_S = 1.0
"""How many seconds' worth of the rate may be used at once."""


class RateMeter:
    """Usage of one principal or address. One request may exceed the rate; the next one waits until it is made up."""

    def __init__(self, name: str, seconds_per_key: float, clock: Callable[[], float]) -> None:
        self.name = name
        self._seconds_per_key = seconds_per_key
        self._clock = clock
        self._free_at = 0.0

    def take(self, keys: int) -> bool:
        """Whether so many keys may be read now; if so, they count as used."""
        if not self._seconds_per_key:
            return True
        now = self._clock()
        if self._free_at > now:
            return False
        self._free_at = max(self._free_at, now - BURST_S) + keys * self._seconds_per_key
        return True

    def charge(self, keys: int) -> None:
        """Count further keys of an admitted request; a negative number gives keys back."""
        self._free_at += keys * self._seconds_per_key

    def retry_after_s(self) -> int:
        """Seconds until the next request is admitted."""
        return max(1, round(self._free_at - self._clock()))


class RateMeters:
    """Meters by principal, or by address for requests without a token. Other instances have no limit."""

    def __init__(self, keys_per_s: int, clock: Callable[[], float]) -> None:
        self._seconds_per_key = 1 / keys_per_s if keys_per_s else 0.0
        self._clock = clock
        self._meters: LRUCache[tuple[bool, str], RateMeter] = LRUCache(METERS_MAX)

    def of(self, principal: Principal, address: str) -> RateMeter:
        """The meter of this principal, or of the address if the principal is anonymous."""
        anonymous = principal is ANONYMOUS
        name = anonymous, address if anonymous else principal.name
        if (found := self._meters.get(name)) is None:
            seconds_per_key = 0.0 if principal is PEER else self._seconds_per_key
            found = self._meters[name] = RateMeter(name[1], seconds_per_key, self._clock)
        return found
