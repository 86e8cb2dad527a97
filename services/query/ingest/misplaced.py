"""Notices keys that are not in the partition that their murmur2 hash names: there nobody would look for them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contracts.wire.partition import partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contracts.model.named_state import NamedState
    from services.query.store.store import Store, Update

log = logging.getLogger(__name__)

EACH = 64
"""One record of so many is looked at: a hash costs a fifth of what a record does, and what is wrong is rarely alone."""
HELD = 100
"""How many keys of each store are looked at when the service starts."""
ADVICE = (
    "write it with the partitioner murmur2_random, and anew if its number of partitions was changed; then delete the "
    "folder of the store"
)


class Misplaced:
    """How many of the keys that were looked at are misplaced, by state. The first one of a state is logged."""

    def __init__(self, states: Mapping[str, NamedState], stores: Mapping[str, Store]) -> None:
        self._states = states
        self.counts = dict.fromkeys(states, 0)
        for name, state in states.items():
            everywhere = range(state.partitions)
            page = stores[name].page(prefix="", after=None, limit=HELD, where={}, partitions=everywhere)
            self._look(name, ((key, entry.partition) for key, entry in page.items))

    def look(self, state: str, updates: Sequence[Update]) -> None:
        """Look at some of these."""
        self._look(state, ((one.key, one.partition) for one in updates[::EACH]))

    def _look(self, state: str, places: Iterable[tuple[str, int]]) -> None:
        partitions, before = self._states[state].partitions, self.counts[state]
        found = [at for key, at in places if partition(key.encode(), partitions) != at]
        self.counts[state] += len(found)
        if found and not before:
            facts = {"state": state, "topic": self._states[state].topic, "partition": found[0], "advice": ADVICE}
            log.error("keys are in other partitions than their hash says", extra={"facts": facts})
