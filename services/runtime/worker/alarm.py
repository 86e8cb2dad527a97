"""Detects that (nearly) everything fails: then the cause is the set-up and not the records."""

from __future__ import annotations


class Alarm:
    """Counts the failures among the last `of` results. The `first` results are enough if all of them failed."""

    def __init__(self, of: int, share: float, first: int) -> None:
        self._failures = bytearray(of)
        self._share = share
        self._first = min(first, of)
        self._noted = 0
        self.failed = 0
        """The number of failures among the last results."""

    def note(self, *, failed: bool) -> bool:
        """Add a result. Return whether too many of the last ones failed, once there are enough."""
        at = self._noted % len(self._failures)
        self.failed += failed - self._failures[at]
        self._failures[at] = failed
        self._noted += 1
        enough = self._first if self.failed == self._noted else len(self._failures)
        return failed and self._noted >= enough and self.failed >= self._share * self.seen

    @property
    def seen(self) -> int:
        """The number of results that it observes."""
        return min(self._noted, len(self._failures))
