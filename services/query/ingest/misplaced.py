"""Detects keys that are not in the partition of their murmur2 hash, where lookups would not find them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contracts.wire.partition import partition
from services.query.store import Scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contracts.model.named_state import NamedState
    from services.query.store import Store, Update

log = logging.getLogger(__name__)

SAMPLE_EVERY = 64
"""One record in so many is checked: a hash costs a fifth of the whole work on a record, and errors come in numbers."""
INITIAL_SAMPLE = 100
"""The number of keys of each store that are checked at the start."""
ADVICE = (
    "write it with the partitioner murmur2_random, and anew if its number of partitions was changed; then delete the "
    "folder of the store"
)


class MisplacedKeys:
    """Counts misplaced keys among those checked, by state, and logs the first of each state."""

    def __init__(self, states: Mapping[str, NamedState], stores: Mapping[str, Store]) -> None:
        self._states = states
        self.counts = dict.fromkeys(states, 0)
        for name, state in states.items():
            page = stores[name].scan(Scan(range(state.partitions), INITIAL_SAMPLE))
            self._check(name, ((position.key, entry.partition) for position, entry in page.items))

    def check(self, state: str, updates: Sequence[Update]) -> None:
        """Check a sample of these updates."""
        self._check(state, ((one.key, one.partition) for one in updates[::SAMPLE_EVERY]))

    def _check(self, state: str, keys: Iterable[tuple[str, int]]) -> None:
        partitions, before = self._states[state].partitions, self.counts[state]
        found = [number for key, number in keys if partition(key.encode(), partitions) != number]
        self.counts[state] += len(found)
        if found and not before:
            facts = {"state": state, "topic": self._states[state].topic, "partition": found[0], "advice": ADVICE}
            log.error("keys are not in the partitions of their hashes", extra={"facts": facts})
