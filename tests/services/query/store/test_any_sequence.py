"""After any sequence of operations, the store of a state with a lifetime returns what a plain dict does."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant, rule

from services.query.store.environment import MIN_MAP_SIZE
from tests.services.query.store.declared import named
from tests.services.query.store.machine import LargeBatchMachine, StoreMachine

pytestmark = pytest.mark.slow


class Stores(StoreMachine):
    """A store of a state with a lifetime."""

    state = named(silence=True)

    @invariant()
    def counts_are_the_same(self) -> None:
        assert self.store.key_count() == len(self.model.stored)


class LargeBatches(LargeBatchMachine, Stores):
    """The same, with large batches."""


class Mapped(LargeBatches):
    """The same, during a bulk load into a map and after it. A store with a history is not mapped."""

    state = named(history=1, silence=True)

    def __init__(self) -> None:
        super().__init__()
        self.mapped = True

    @rule()
    def settle(self) -> None:
        self.store.finish_bulk_load()
        self.mapped = False

    @invariant()
    def it_is_mapped_until_it_settles(self) -> None:
        """This holds after a restart too: the file is as large as its map then."""
        assert ((self.folder / "data.mdb").stat().st_size >= MIN_MAP_SIZE) == self.mapped


TestAnySequence = Stores.TestCase
TestAnySequenceOfLargeBatches = LargeBatches.TestCase
TestAnySequenceMapped = Mapped.TestCase
TestAnySequence.settings = TestAnySequenceOfLargeBatches.settings = TestAnySequenceMapped.settings = settings(
    max_examples=settings().max_examples // 5, stateful_step_count=25
)
