"""Detects that (nearly) everything fails: then the cause is the set-up and not the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Hashable


class Alarm:
    """Counts the failures among the last `of` results. The `first` results are enough if all of them failed."""

    def __init__(self, of: int, share: float, first: int) -> None:
        self._failures = bytearray(of)
        self._share = share
        self._first = min(first, of)
        self._noted = 0
        self._subjects: set[Hashable] = set()
        """The subjects that have failed since the last success."""
        self.failed = 0
        """The number of failures among the last results."""

    @classmethod
    def in_a_row(cls, failures: int) -> Self:
        """Return an alarm for this many failures without a success between them."""
        return cls(failures, 1.0, failures)

    def note(self, *, failed: bool, subject: Hashable | None = None) -> bool:
        """Add a result. Return whether too many of the last ones failed, once there are enough.

        Failures of one subject count once until something succeeds: a bad key is no bad set-up.
        """
        if not failed:
            self._subjects.clear()
        elif subject is not None:
            if subject in self._subjects:
                return False
            self._subjects.add(subject)
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
