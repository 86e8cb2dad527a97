"""A store and its reference, after any sequence of operations."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from services.query.store import Store
from services.query.store import store as store_module
from services.query.store.buckets import milliseconds, time_buckets
from services.query.store.scan import Position, Scan, Seconds
from tests.services.query.store.declared import removal, update
from tests.services.query.store.model import Model

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState
    from services.query.store import Entry, Update

KEYS = ("a", "a\0", "a\0b", "a/b", "a/bc", "a\x7f", "b", "bé", "\U0001f6eb", "\uffff", "z" * 500)
PREFIXES = ("", "a", "a\0", "a/b", "b", "\U0001f6eb", "nowhere", "z" * 501)
STATUSES = (None, "landed", "7", 7, 7.0, -3, -0.0, 0, 1e30, 1e-9, True, ["x"], {"y": 1})
WHERE: tuple[dict[str, str], ...] = (
    {},
    {"state.status": "landed"},
    {"state.status": "7"},
    {"state.status": '{"y":1}'},
    {"state.gate": "B2", "state.status": "7.0"},
)
STEP = 40
STARTS = tuple(range(-STEP, 13 * STEP, STEP))

snapshots = st.builds(
    update,
    key=st.sampled_from(KEYS),
    window_start=st.sampled_from(STARTS),
    version=st.integers(-1, 6),
    epoch=st.integers(0, 2),
    partition=st.integers(0, 1),
    status=st.sampled_from(STATUSES),
    gate=st.sampled_from((None, "B2")),
)
tombstones = st.builds(removal, st.sampled_from(KEYS), window_start=st.sampled_from(STARTS) | st.none())
updates = st.lists(st.one_of(snapshots, snapshots, snapshots, tombstones), max_size=12)


class StoreMachine(RuleBasedStateMachine):
    """A store of this state, and its reference."""

    state: NamedState

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = Store(self.folder, self.state, "boot")
        every = 0 if self.state.every is None else milliseconds(self.state.every)
        self.model = Model(time_buckets(self.state), every, self.state.query.history)
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
        self.store = Store(self.folder, self.state, "boot")

    @rule(partition=st.integers(0, 1))
    def clear(self, partition: int) -> None:
        while not self.store.clear_partition(partition):
            pass
        self.model.clear_partition(partition)

    @rule(watermark=st.integers(0, 900))
    def advance(self, watermark: int) -> None:
        self.store.advance_watermark(watermark)
        self.model.advance(watermark)
        self._apply([], {})  # it drops the buckets that are no longer remembered

    @invariant()
    def keys_are_the_same(self) -> None:
        assert self.store.get_many(KEYS) == [self.model.get(key) for key in KEYS]
        for key in KEYS:
            assert self.store.get(key) == self.model.get(key)
            assert self.store.versions(key) == self.model.versions(key)
            earlier = self.model.versions(key)[:-1]
            for at, entry in enumerate(earlier):
                assert self.store.earlier_versions(key, entry.order, 1 << 20) == earlier[at:]
                assert self.store.earlier_versions(key, entry.order, 1) == earlier[at : at + 1]

    @invariant()
    def windows_are_the_same(self) -> None:
        for key in KEYS:
            for start, end in ((None, None), (0, 5 * STEP), (3 * STEP + 1, None), (2 * STEP, 2 * STEP + 1)):
                expected = self.model.windows(key, start, end)
                assert self.store.windows(key, start=start, end=end, newest_first=False, limit=99) == expected
                last = self.store.windows(key, start=start, end=end, newest_first=True, limit=2)
                assert last == expected[::-1][:2]

    @invariant()
    def pages_are_the_same(self) -> None:
        for prefix in PREFIXES:
            for where in WHERE:
                assert self._keys(prefix, where, {0, 1}) == self.model.page(prefix, where, {0, 1})
        assert self._keys("", WHERE[2], {1}) == self.model.page("", WHERE[2], {1})

    @invariant()
    def silent_keys_are_the_same(self) -> None:
        everything = self.model.page("", {}, {0, 1})
        for since, until, prefix, partitions in ((-9, 99, "", {0, 1}), (0, 2, "a", {0, 1}), (1, 3, "", {1})):
            expected = [
                (entry.event_time // 1000, key.encode(), entry)
                for key, entry in everything
                if since <= entry.event_time // 1000 < until
                and key.startswith(prefix)
                and entry.partition in partitions
            ]
            scan = Scan(partitions, 2, prefix, silent=Seconds(since, until))
            found = [(position.number, position.key.encode(), entry) for position, entry in self.read(scan)]
            assert found == sorted(expected, key=lambda one: one[:2])

    @invariant()
    def facts_are_the_same(self) -> None:
        assert self.store.watermark() == self.model.watermark
        assert [self.store.position(one) for one in (0, 1, 2)] == [self.model.positions.get(one) for one in (0, 1, 2)]
        for kept in self.model.stored.values():
            start = kept[-1].window_start
            assert self.store.is_expired(kept[-1]) == self.model.times.is_expired(start, self.model.watermark)

    def read(self, scan: Scan) -> list[tuple[Position, Entry]]:
        """Return all pages."""
        found: list[tuple[Position, Entry]] = []
        while True:
            page = self.store.scan(scan)
            assert len(page.items) <= scan.limit
            found += page.items
            if page.after is None:
                return found
            scan = scan._replace(after=page.after)

    def _keys(self, prefix: str, where: dict[str, str], partitions: set[int]) -> list[tuple[str, Entry]]:
        return [(position.key, entry) for position, entry in self.read(Scan(partitions, 2, prefix, where=where))]

    def _apply(self, batch: list[Update], positions: dict[int, int]) -> None:
        """A key that gets several windows has one change, unless the state stores all of them.

        A tombstone may also delete a window that is not remembered any more.
        """
        changes, expected = self.store.apply(batch, positions), self.model.apply(batch, positions)
        if not self.model.times.window:
            by_key = {key: entry for (key, _), entry in expected.items()}
            assert {change.key: change.entry for change in changes} == by_key
            assert len(changes) == len(by_key)
            return
        found = {
            (change.key, change.window_start if change.entry is None else change.entry.window_start): change.entry
            for change in changes
        }
        assert len(found) == len(changes)
        assert {name: entry for name, entry in found.items() if name in expected or entry is not None} == expected


class LargeBatchMachine(StoreMachine):
    """The same, with each batch written as while a store catches up."""

    def __init__(self) -> None:
        super().__init__()
        self.few = store_module.BULK_SIZE
        store_module.BULK_SIZE = 1

    @override
    def teardown(self) -> None:
        store_module.BULK_SIZE = self.few
        super().teardown()
