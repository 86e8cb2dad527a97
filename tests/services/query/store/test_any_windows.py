"""After any sequence of operations, the store of a windowed state returns what a plain dict does."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from services.query.store import lmdb_store
from services.query.store.buckets import time_buckets
from services.query.store.lmdb_store import LmdbStore
from services.query.store.scan import Position, Scan, Seconds
from tests.services.query.store.declared import HISTORY, named, removal, update
from tests.services.query.store.window_model import WindowModel

if TYPE_CHECKING:
    from services.query.store import Entry, Update

KEYS = ("a", "a\0", "a\0b", "a/b", "a\x7f", "b", "bé", "\U0001f6eb", "z" * 500)
PREFIXES = ("", "a", "a\0", "b", "z" * 501)
COUNTS = (None, "7", 7, 7.0, -3, -0.0, 0, 1e30, 1e-9, True)
WHERE: tuple[dict[str, str], ...] = ({}, {"state.status": "7"}, {"state.gate": "B2", "state.status": "7.0"})
ORDERS = (None, "state.status")
WINDOW, EVERY, STEP, REMEMBER, GRACE = 80, 40, 40, 200, 30
STARTS = tuple(range(-STEP, 13 * STEP, STEP))
TIMES = tuple(range(-STEP, 13 * STEP, STEP // 2))

snapshots = st.builds(
    update,
    key=st.sampled_from(KEYS),
    window_start=st.sampled_from(STARTS),
    version=st.integers(0, 6),
    epoch=st.integers(0, 2),
    partition=st.integers(0, 1),
    status=st.sampled_from(COUNTS),
    gate=st.sampled_from((None, "B2")),
)
tombstones = st.builds(removal, st.sampled_from(KEYS), window_start=st.sampled_from(STARTS) | st.none())
updates = st.lists(st.one_of(snapshots, snapshots, snapshots, tombstones), max_size=12)


class Windows(RuleBasedStateMachine):
    """A store of hopping windows, and its reference."""

    history = HISTORY

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        state = named(lifetime=WINDOW, history=self.history, silence=True)
        self.state = replace(
            state,
            window=timedelta(milliseconds=WINDOW),
            every=timedelta(milliseconds=EVERY),
            grace=timedelta(milliseconds=GRACE),
            query=replace(state.query, remember=timedelta(milliseconds=REMEMBER)),
        )
        self.store = LmdbStore(self.folder, self.state, "boot")
        self.model = WindowModel(time_buckets(self.state), EVERY, self.history)
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
    def clear(self, partition: int) -> None:
        while not self.store.clear_partition(partition):
            pass
        self.model.clear_partition(partition)

    @rule(watermark=st.integers(0, 900))
    def advance(self, watermark: int) -> None:
        self.store.advance_watermark(watermark)
        self.model.advance(watermark)
        self._apply([], {})  # an advanced watermark survives a restart only after the next batch

    @invariant()
    def keys_are_the_same(self) -> None:
        assert self.store.get_many(KEYS) == [self.model.get(key) for key in KEYS]
        for key in KEYS:
            assert self.store.get(key) == self.model.get(key)
            assert self.store.versions(key) == self.model.versions(key)

    @invariant()
    def windows_at_a_time_are_the_same(self) -> None:
        for time in TIMES:
            assert self.store.get_many_at(KEYS, time) == [self.model.get(key, time) for key in KEYS]
        for key, time in zip(KEYS, TIMES, strict=False):
            assert self.store.get_at(key, time) == self.model.get(key, time)
            assert self.store.versions_at(key, time) == self.model.versions(key, time)

    @invariant()
    def ranges_are_the_same(self) -> None:
        for key in KEYS:
            for start, end in ((None, None), (0, 5 * STEP), (3 * STEP + 1, None), (2 * STEP, 2 * STEP + 1)):
                expected = self.model.windows(key, start, end)
                assert self.store.windows(key, start=start, end=end, newest_first=False, limit=99) == expected
                last = self.store.windows(key, start=start, end=end, newest_first=True, limit=2)
                assert last == expected[::-1][:2]

    @invariant()
    def pages_of_keys_are_the_same(self) -> None:
        for prefix in PREFIXES:
            for where in WHERE:
                assert self._pages(prefix, where, {0, 1}) == self.model.page(prefix, where, {0, 1})
        assert self._pages("", {}, {1}) == self.model.page("", {}, {1})

    @invariant()
    def pages_of_a_window_are_the_same(self) -> None:
        for time in TIMES[::3]:
            for prefix, where, partitions in (("", {}, {0, 1}), ("a", WHERE[1], {0, 1}), ("", WHERE[2], {0})):
                for order_by in ORDERS:
                    for descending in (False, True) if order_by else (False,):
                        scan = Scan(partitions, 2, prefix, None, where, time, order_by, descending)
                        expected = self.model.window(time, prefix, where, partitions, order_by, descending)
                        assert self._window(scan) == expected

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
        for start in STARTS:
            assert self.store.is_open(start) == (start + WINDOW > self.model.watermark)

    def _apply(self, batch: list[Update], positions: dict[int, int]) -> None:
        changes = self.store.apply(batch, positions)
        found = {
            (change.key, change.window_start if change.entry is None else change.entry.window_start): change
            for change in changes
        }
        assert len(found) == len(changes)
        expected = self.model.apply(batch, positions)
        visible = {name: one.entry for name, one in found.items() if name in expected or one.entry is not None}
        assert visible == expected

    def _silent(self, scan: Scan) -> list[tuple[int, bytes, Entry]]:
        return [(int(position.number), position.key.encode(), entry) for position, entry in self._read(scan)]

    def _pages(self, prefix: str, where: dict[str, str], partitions: set[int]) -> list[tuple[str, Entry]]:
        return [(position.key, entry) for position, entry in self._read(Scan(partitions, 2, prefix, where=where))]

    def _window(self, scan: Scan) -> list[tuple[str, Entry]]:
        assert scan.time is not None
        assert self.store.scan(scan).window_start == self.model.window_start(scan.time)
        return [(position.key, entry) for position, entry in self._read(scan)]

    def _read(self, scan: Scan) -> list[tuple[Position, Entry]]:
        found: list[tuple[Position, Entry]] = []
        while True:
            page = self.store.scan(scan)
            assert len(page.items) <= scan.limit
            found += page.items
            if page.after is None:
                return found
            scan = scan._replace(after=page.after)


class LargeBatches(Windows):
    """The same, with each batch written as while a store catches up."""

    history = 1

    def __init__(self) -> None:
        super().__init__()
        self.few = lmdb_store.BULK_SIZE
        lmdb_store.BULK_SIZE = 1

    @override
    def teardown(self) -> None:
        lmdb_store.BULK_SIZE = self.few
        super().teardown()


TestAnyWindows = Windows.TestCase
TestAnyWindowsInLargeBatches = LargeBatches.TestCase
TestAnyWindows.settings = TestAnyWindowsInLargeBatches.settings = settings(
    max_examples=settings().max_examples // 8, stateful_step_count=20
)
