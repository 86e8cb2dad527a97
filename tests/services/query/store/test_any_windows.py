"""After any sequence of operations, the store of a windowed state returns what a plain dict does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis.stateful import invariant

from services.query.store.scan import Scan
from tests.services.query.store.declared import named
from tests.services.query.store.machine import KEYS, STARTS, STEP, WHERE, LargeBatchMachine, StoreMachine

WINDOW, EVERY, REMEMBER, GRACE = 80, 40, 200, 30
TIMES = tuple(range(-STEP, 13 * STEP, STEP // 2))
HOPPING = replace(
    named(lifetime=WINDOW, silence=True),
    window=timedelta(milliseconds=WINDOW),
    every=timedelta(milliseconds=EVERY),
    grace=timedelta(milliseconds=GRACE),
)
REMEMBERED = replace(HOPPING.query, remember=timedelta(milliseconds=REMEMBER))


class Windows(StoreMachine):
    """A store of hopping windows."""

    state = replace(HOPPING, query=REMEMBERED)

    @invariant()
    def windows_at_a_time_are_the_same(self) -> None:
        for time in TIMES:
            assert self.store.get_many(KEYS, time) == [self.model.get(key, time) for key in KEYS]
        for key, time in zip(KEYS, TIMES, strict=False):
            assert self.store.get(key, time) == self.model.get(key, time)
            assert self.store.versions(key, time) == self.model.versions(key, time)

    @invariant()
    def pages_of_a_window_are_the_same(self) -> None:
        for time in TIMES[::3]:
            for prefix, where, partitions in (("", {}, {0, 1}), ("a", WHERE[2], {0, 1}), ("", WHERE[4], {0})):
                for order_by, descending in ((None, False), ("state.status", False), ("state.status", True)):
                    scan = Scan(partitions, 2, prefix, None, where, time, order_by, descending)
                    assert self.store.scan(scan).window_start == self.model.window_start(time)
                    found = [(position.key, entry) for position, entry in self.read(scan)]
                    assert found == self.model.window(time, prefix, where, partitions, order_by, descending)

    @invariant()
    def open_windows_are_the_same(self) -> None:
        for start in STARTS:
            assert self.store.is_open(start) == (start + WINDOW > self.model.watermark)


class LargeBatches(LargeBatchMachine, Windows):
    """The same, with large batches."""

    state = replace(HOPPING, query=replace(REMEMBERED, history=1))


TestAnyWindows = Windows.TestCase
TestAnyWindowsInLargeBatches = LargeBatches.TestCase
TestAnyWindows.settings = TestAnyWindowsInLargeBatches.settings = settings(
    max_examples=settings().max_examples // 8, stateful_step_count=20
)
