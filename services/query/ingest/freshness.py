"""When all that was on a partition was here for the last time. In the follower's thread."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from services.query.ingest.ingestion import Part
    from services.query.ingest.tombstones import Removals
    from services.query.store.store import Store


class Asked(NamedTuple):
    """A partition's end, and when it was asked for."""

    end: int
    at: int


class Freshness:
    """Notes it in the stores, and tells whether a partition has to be read from its beginning for it was away too long.

    One that is read from its beginning is not judged before its end was reached: otherwise a topic that keeps removals
    for a shorter time than reading it takes would be read for ever.
    """

    def __init__(self, stores: Mapping[str, Store], removals: Removals) -> None:
        self._stores = stores
        self._removals = removals
        self._judged: set[Part] = set()
        self._asked: dict[Part, Asked] = {}

    def begin(self, part: Part, position: int | None) -> None:
        """It is read from there on; None: from its beginning."""
        self._asked.pop(part, None)
        if position is None:
            self._judged.discard(part)
            self._stores[part.state].freshen({part.partition: self._removals.now()})
        else:
            self._judged.add(part)

    def ask(self, ends: Mapping[Part, int], at: int, positions: Mapping[Part, int]) -> None:
        """These were their ends then; an earlier question that is not answered yet goes on."""
        for part, end in ends.items():
            self._asked.setdefault(part, Asked(end, at))
        self.reached(positions)

    def reached(self, positions: Mapping[Part, int]) -> None:
        """Readers see all before these."""
        fresh: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for part, position in positions.items():
            asked = self._asked.get(part)
            if asked is not None and position >= asked.end:
                del self._asked[part]
                self._judged.add(part)
                fresh[part.state][part.partition] = asked.at
        for state, times in fresh.items():
            self._stores[state].freshen(times)

    def lost(self, part: Part, position: int | None, offsets: Iterable[int]) -> bool:
        """Whether a removal can be missing at the position, or between these offsets, which are read next.

        Compaction leaves a hole where it took one away. So nothing is lost where there is none, whatever the clock
        says: one that jumps ahead would have every instance read everything anew.
        """
        fresh = self._stores[part.state].fresh(part.partition)
        if part not in self._judged or not self._removals.lost(part.state, fresh):
            return False
        return fresh is None or missing(position, offsets)


def missing(position: int | None, offsets: Iterable[int]) -> bool:
    """Whether there are holes from a position on to the last of these offsets, which are in order."""
    for offset in offsets:
        if position is not None and offset > position:
            return True
        position = offset + 1
    return False
