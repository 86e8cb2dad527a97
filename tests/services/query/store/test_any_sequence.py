"""After any sequence of operations, a store returns what a plain dict does."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from services.query.store import lmdb_store
from services.query.store.buckets import time_buckets
from services.query.store.environment import MIN_MAP_SIZE
from services.query.store.lmdb_store import LmdbStore
from services.query.store.scan import Position, Scan, Seconds
from tests.services.query.store.declared import HISTORY, named, removal, update
from tests.services.query.store.model import Model

if TYPE_CHECKING:
    from services.query.store import Entry, Update

pytestmark = pytest.mark.slow

KEYS = ("a", "a/b", "a/bc", "b", "bé", "\U0001f6eb", "\uffff", "z" * 500)
PREFIXES = ("", "a", "a/b", "b", "\U0001f6eb", "nowhere", "z" * 501)
STATUSES = (None, "landed", "flying", 7, 7.5, True, ["x"], {"y": 1})
WHERE: tuple[dict[str, str], ...] = (
    {},
    {"state.status": "landed"},
    {"state.status": "7"},
    {"state.status": '{"y":1}'},
    {"state.gate": "B2", "state.status": "flying"},
)

starts = st.integers(0, 12).map(lambda step: step * 40)
snapshots = st.builds(
    update,
    key=st.sampled_from(KEYS),
    window_start=starts,
    version=st.integers(-1, 6),
    epoch=st.integers(0, 2),
    partition=st.integers(0, 1),
    status=st.sampled_from(STATUSES),
    gate=st.sampled_from((None, "B2")),
)
updates = st.lists(
    st.one_of(snapshots, st.builds(removal, st.sampled_from(KEYS), window_start=starts | st.none())), max_size=8
)


class Stores(RuleBasedStateMachine):
    """A store, and its reference."""

    history = HISTORY

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.state = named(history=self.history, silence=True)
        self.store = LmdbStore(self.folder, self.state, "boot")
        self.model = Model(time_buckets(self.state), self.history)
        self.batches: list[list[Update]] = []

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    @rule(batch=updates, partition=st.integers(0, 1), position=st.integers(0, 99))
    def apply(self, batch: list[Update], partition: int, position: int) -> None:
        self._apply(batch, {partition: position})
        self.batches.append(batch)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        self._apply(data.draw(st.sampled_from(self.batches)), {})

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = LmdbStore(self.folder, self.state, "boot")

    @rule(partition=st.integers(0, 1))
    def forget(self, partition: int) -> None:
        while not self.store.clear_partition(partition):
            pass
        self.model.clear_partition(partition)

    @rule(watermark=st.integers(0, 500))
    def advance(self, watermark: int) -> None:
        self.store.advance_watermark(watermark)
        self.model.watermark = max(self.model.watermark, watermark)
        self._apply([], {})  # an advanced watermark survives a restart only after the next batch

    @invariant()
    def keys_are_the_same(self) -> None:
        expected = [self._last(key) for key in KEYS]
        assert [self.store.get(key) for key in KEYS] == expected
        assert self.store.get_many(KEYS) == expected
        assert self.store.key_count() == len(self.model.entries)

    @invariant()
    def versions_are_the_same(self) -> None:
        for key in KEYS:
            assert self.store.versions(key) == self.model.entries.get(key, [])

    @invariant()
    def pages_are_the_same(self) -> None:
        for prefix in PREFIXES:
            for where in WHERE:
                for partitions in ({0, 1}, {1}):
                    expected = self.model.page(prefix, where, partitions)
                    assert self._pages(prefix, where, partitions) == expected

    @invariant()
    def silent_keys_are_the_same(self) -> None:
        everything = self.model.page("", {}, {0, 1})
        for since, until, prefix, partitions in ((-9, 99, "", {0, 1}), (0, 2, "a", {0, 1}), (1, 3, "", {1})):
            scan = Scan(partitions, 2, prefix, silent=Seconds(since, until))
            expected = [
                (entry.event_time // 1000, key.encode(), entry)
                for key, entry in everything
                if since <= entry.event_time // 1000 < until
                and key.startswith(prefix)
                and entry.partition in partitions
            ]
            assert self._silent(scan) == sorted(expected, key=lambda one: one[:2])

    @invariant()
    def facts_are_the_same(self) -> None:
        assert self.store.watermark() == self.model.watermark
        assert [self.store.position(one) for one in (0, 1, 2)] == [self.model.positions.get(one) for one in (0, 1, 2)]
        for kept in self.model.entries.values():
            assert self.store.is_expired(kept[-1]) == self.model.times.is_expired(
                kept[-1].window_start, self.model.watermark
            )

    def _apply(self, batch: list[Update], positions: dict[int, int]) -> None:
        changes = self.store.apply(batch, positions)
        assert {change.key: change.entry for change in changes} == self.model.apply(batch, positions)
        assert len(changes) == len({change.key for change in changes})

    def _last(self, key: str) -> Entry | None:
        kept = self.model.entries.get(key)
        return kept[-1] if kept else None

    def _silent(self, scan: Scan) -> list[tuple[int, bytes, Entry]]:
        return [(int(position.number), position.key.encode(), entry) for position, entry in self._read(scan)]

    def _pages(self, prefix: str, where: dict[str, str], partitions: set[int]) -> list[tuple[str, Entry]]:
        return [(position.key, entry) for position, entry in self._read(Scan(partitions, 2, prefix, where=where))]

    def _read(self, scan: Scan) -> list[tuple[Position, Entry]]:
        found: list[tuple[Position, Entry]] = []
        while True:
            page = self.store.scan(scan)
            assert len(page.items) <= scan.limit
            found += page.items
            if page.after is None:
                return found
            scan = scan._replace(after=page.after)


class LargeBatches(Stores):
    """The same, with each batch written as while a store catches up."""

    def __init__(self) -> None:
        super().__init__()
        self.few = lmdb_store.BULK_SIZE
        lmdb_store.BULK_SIZE = 1

    @override
    def teardown(self) -> None:
        lmdb_store.BULK_SIZE = self.few
        super().teardown()


class Mapped(LargeBatches):
    """The same, during a bulk load into a map and after it. A store with a history is not mapped."""

    history = 1

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
