"""What was published of each life, version by version in the order of the topic, and what it must never look like."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    Life = tuple[str, datetime]


class Published:
    """The versions of all lives."""

    def __init__(self) -> None:
        self.versions: dict[Life, list[int]] = {}

    def add(self, life: Life, version: int) -> None:
        """One more snapshot."""
        self.versions.setdefault(life, []).append(version)

    def incomplete(self) -> set[Life]:
        """The lives of which a version is missing."""
        return {life for life, found in self.versions.items() if {*found} != {*range(1, max(found) + 1)}}

    def skips(self) -> set[Life]:
        """The lives in which a version was followed neither by the next one nor by one that it had passed."""
        return {
            life
            for life, found in self.versions.items()
            if any(now > before + 1 for before, now in pairwise([0, *found]))
        }

    def rewinds(self) -> int:
        """How often the versions of one life went back, at the most: they do so only when the job begins again."""
        falls = (sum(now <= before for before, now in pairwise(found)) for found in self.versions.values())
        return max(falls, default=0)
