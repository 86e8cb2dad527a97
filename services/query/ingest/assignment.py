"""The partitions that are followed, how far each was read, and how one is read from its beginning. In the thread."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from services.query.ingest.ingestion import Part, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from services.query.ingest.batch_reader import Reader
    from services.query.ingest.freshness import Freshness
    from services.query.store.store import Store

log = logging.getLogger(__name__)

NEAR = 10_000


class Followed:
    """`topics` and `stores` by state. What is assigned to the reader can be made again from this, and the stores."""

    def __init__(
        self, reader: Reader, topics: Mapping[str, str], stores: Mapping[str, Store], freshness: Freshness
    ) -> None:
        self._reader = reader
        self._freshness = freshness
        self._topics = topics
        self._stores = stores
        self._parts: set[Part] = set()
        self._forgetting: list[Part] = []
        self.progress: dict[Part, Progress] = {}

    def __contains__(self, part: Part) -> bool:
        return part in self._parts

    @property
    def busy(self) -> bool:
        """Whether there is something to forget."""
        return bool(self._forgetting)

    def begin(self, part: Part) -> None:
        """Follow it from where its store is; what an earlier process has forgotten half is forgotten first."""
        if part in self._parts:
            return
        self._parts.add(part)
        if self._stores[part.state].half_forgotten(part.partition):
            self._forgetting.append(part)
        else:
            self._read(part)

    def end(self, part: Part) -> None:
        """Follow it no more."""
        if part not in self._parts:
            return
        self._parts.remove(part)
        self.progress.pop(part, None)
        if part in self._forgetting:
            self._forgetting.remove(part)
        else:
            self._reader.end(self._topics[part.state], part.partition)

    def restart(self, part: Part, why: str, tell: Callable[[], bool]) -> None:
        """Forget all of it, and read it from its beginning; not if it cannot be told to who answers."""
        if part in self._forgetting:
            return
        log.warning("a partition is read from its beginning", extra={"facts": {**part._asdict(), "reason": why}})
        self.progress.pop(part, None)  # before anybody takes it for that of the new beginning
        if tell():
            self._forgetting.append(part)
            self._reader.end(self._topics[part.state], part.partition)

    def forget(self) -> None:
        """Go on forgetting, a little: others are read meanwhile."""
        if self._forgetting:
            part = self._forgetting[0]
            if self._stores[part.state].forget(part.partition):
                self._forgetting.remove(part)
                self._read(part)

    def lost(self, part: Part, offsets: Iterable[int]) -> bool:
        """Whether a removal can be missing before these, which are read next: it was away for too long."""
        if part not in self._parts or part in self._forgetting:
            return False
        return self._freshness.lost(part, self._position(part), offsets)

    def ask(self, ends: Mapping[Part, int], at: int) -> None:
        """These were the partitions' ends then."""
        followed = {part: end for part, end in ends.items() if part in self.progress}
        self._freshness.ask(followed, at, {part: self.progress[part].position for part in followed})

    def mend(self) -> None:
        """Read everything on from where its store is: what was read and not written is read again."""
        parts = [part for part in self._parts if part not in self._forgetting]
        self._reader.place({(self._topics[part.state], part.partition): self._position(part) for part in parts})

    def kept_up(self, state: str) -> bool:
        """Whether all that is followed of the state is read, but for NEAR records of each partition."""
        known = [self.progress.get(part) for part in self._parts if part.state == state]
        return bool(known) and all(one and one.end is not None and one.lag < NEAR for one in known)

    def reached(self, part: Part, position: int) -> None:
        """Readers see all before this."""
        if part not in self._parts or part in self._forgetting:
            return
        before, end = self.progress.get(part), self._reader.known_end(self._topics[part.state], part.partition)
        position = max(position, before.position if before else 0)
        self.progress[part] = Progress(position, max(position, end or 0))
        self._freshness.reached({part: position})

    def _read(self, part: Part) -> None:
        position = self._position(part)
        if position is not None:
            self.progress[part] = Progress(position, None)
        self._freshness.begin(part, position)
        self._reader.begin(self._topics[part.state], part.partition, position)

    def _position(self, part: Part) -> int | None:
        return self._stores[part.state].position(part.partition)
