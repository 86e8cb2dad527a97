"""The published versions of each window in the order of the topic, and the faults that they may have."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    WindowKey = tuple[str, datetime]


class Published:
    """The versions of all windows."""

    def __init__(self) -> None:
        self.versions: dict[WindowKey, list[int]] = {}

    def add(self, window: WindowKey, version: int) -> None:
        """One more snapshot."""
        self.versions.setdefault(window, []).append(version)

    def incomplete(self) -> set[WindowKey]:
        """The windows of which a version is missing."""
        return {window for window, versions in self.versions.items() if {*versions} != {*range(1, max(versions) + 1)}}

    def skips(self) -> set[WindowKey]:
        """The windows in which a version was followed neither by the next one nor by one that it had passed."""
        return {
            window
            for window, versions in self.versions.items()
            if any(now > before + 1 for before, now in pairwise([0, *versions]))
        }

    def rewinds(self) -> int:
        """Return the largest number of rewinds of a window: its versions go back only when the job begins again."""
        falls = (sum(now <= before for before, now in pairwise(versions)) for versions in self.versions.values())
        return max(falls, default=0)
