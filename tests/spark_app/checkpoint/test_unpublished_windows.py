"""What a generation leaves out: windows that others have closed, and those whose first events its state lacks."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_app.checkpoint.commit_log import COMMITS, OFFSETS
from spark_app.checkpoint.unpublished_windows import (
    BEGINNING,
    FILE,
    StartRange,
    UnpublishedWindows,
    carry_closed,
    over_until,
    store_missing,
    store_windows,
    stored_windows,
)
from tests.simulation.savepoints import MemoryFolder

STARTS = range(1, 13)
"""The windows begin at these milliseconds."""


def generation(watermark: int = 0, missing: int = BEGINNING, *closed: tuple[int, int]) -> Any:
    """Return the folder of a generation, in memory. It has no watermark if that is 0."""
    folder: Any = MemoryFolder("a generation")
    store_windows(folder, UnpublishedWindows(missing=missing, closed=tuple(StartRange(*one) for one in closed)))
    commit(folder, watermark)
    return folder


def commit(folder: Any, watermark: int) -> None:
    """Write what Spark's logs have of a batch."""
    folder.overwrite(f"{OFFSETS}/0", f'v1\n{{"batchWatermarkMs":{watermark}}}')
    folder.overwrite(f"{COMMITS}/0", "v1")


def time(start: int) -> datetime:
    """Return the time of a start."""
    return datetime.fromtimestamp(start / 1000, UTC)


def test_a_rollback_publishes_the_windows_that_only_the_rebuilt_generation_lacks() -> None:
    """The first one has closed windows until 10. The rebuilt one lacks those until 20, and has closed others until 30.

    After the rollback the first one goes on to 15; then it is rebuilt, and rolled back again.
    """
    first, rebuilt = generation(10), generation(30, 20)
    for folder, active in ((rebuilt, first), (first, rebuilt)):
        carry_closed(folder, active)
    assert stored_windows(first) == UnpublishedWindows(closed=(StartRange(BEGINNING, 10), StartRange(20, 30)))
    assert stored_windows(rebuilt) == UnpublishedWindows(missing=20, closed=(StartRange(BEGINNING, 10),))
    assert over_until(first) == 10, "a rebuild reads the events of those that the first one has to publish"
    commit(first, 15)
    again = generation()
    for folder, active in ((again, first), (first, again)):
        carry_closed(folder, active)
        assert stored_windows(folder).closed == (StartRange(BEGINNING, 15), StartRange(20, 30))


def test_a_rebuild_that_follows_lacks_no_more_than_its_own_events() -> None:
    """The rebuilt generation lacks windows until 20; the next one has their events, and closes what nobody has."""
    following = generation()
    carry_closed(following, generation(30, 20, (BEGINNING, 10)))
    assert stored_windows(following) == UnpublishedWindows(closed=(StartRange(BEGINNING, 10), StartRange(20, 30)))


def test_a_state_that_is_read_anew_keeps_what_is_closed() -> None:
    folder = generation(0, 7, (1, 5))
    store_missing(folder, None)
    assert stored_windows(folder) == UnpublishedWindows(closed=(StartRange(1, 5),))
    store_missing(folder, 9)
    assert stored_windows(folder) == UnpublishedWindows(missing=9, closed=(StartRange(1, 5),))


class CrashError(Exception):
    """The process has ended."""


class CrashingFolder(MemoryFolder):
    """A folder whose process ends within a write: some characters are left of it."""

    def __init__(self, crashes_at: int, left: int) -> None:
        super().__init__("a generation")
        self._writes = crashes_at
        self._left = left

    def overwrite(self, name: str, content: Any) -> None:
        """See `CheckpointFolder.overwrite`."""
        self._writes -= 1
        if self._writes == 0:
            super().overwrite(name, content[: self._left])
            raise CrashError
        super().overwrite(name, content)


@pytest.mark.parametrize("left", [0, 1, 20])
@pytest.mark.parametrize("crashes_at", [1, 2, 3, 4])
def test_a_crash_within_a_write_leaves_what_was_before_or_after_it(crashes_at: int, left: int) -> None:
    """A build that continues does not look for the missing windows again, and a rollback cannot."""
    folder: Any = CrashingFolder(crashes_at, left)
    states = [UnpublishedWindows(), *(UnpublishedWindows(missing=missing) for missing in STARTS)]
    for before, after in pairwise(states):
        try:
            store_windows(folder, after)
        except CrashError:
            assert stored_windows(folder) in {before, after}
            store_windows(folder, after)
        assert stored_windows(folder) == after


def test_without_a_file_each_window_is_published() -> None:
    folder: Any = MemoryFolder("a generation")
    assert stored_windows(folder) == UnpublishedWindows()
    assert not stored_windows(folder).ranges
    assert over_until(folder) is None


def test_the_one_time_of_an_older_file_counts_as_both() -> None:
    """It may be of closed windows, which a later generation must not publish, or of such that its state lacks."""
    older: Any = MemoryFolder("a generation")
    older.overwrite(FILE, "20")
    assert stored_windows(older) == UnpublishedWindows(missing=20, closed=(StartRange(BEGINNING, 20),))
    assert stored_windows(older).ranges == (StartRange(BEGINNING, 20),)
    store_missing(older, 5)
    assert stored_windows(older).ranges == (StartRange(BEGINNING, 20),), "its job had read nothing"
    following = generation()
    carry_closed(following, older)
    assert stored_windows(following).closed == (StartRange(BEGINNING, 20),)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        pytest.param(generation(), None, id="nothing is over"),
        pytest.param(generation(30), 30, id="the watermark has passed them"),
        pytest.param(generation(0, 30), 30, id="it has no watermark"),
        pytest.param(generation(20, 30), 30, id="it is behind what it lacks"),
        pytest.param(generation(30, 20), 30, id="it is ahead of what it lacks"),
        pytest.param(generation(20, 10, (15, 25)), 25, id="it is within what is closed"),
        pytest.param(generation(20, 10, (25, 30)), 20, id="it has to publish others before"),
        pytest.param(generation(0, BEGINNING, (25, 30)), None, id="it has to publish all before"),
    ],
)
def test_the_windows_that_are_over(folder: Any, expected: int | None) -> None:
    assert over_until(folder) == expected


class Generations:
    """Publishes windows as the jobs of generations do, of which one is active."""

    def __init__(self) -> None:
        self.folders = [generation()]
        self.published: Counter[int] = Counter()
        self._watermarks = [0]
        self._active = 0

    def switch(self, to: int) -> None:
        """Activate another generation."""
        self.interrupted(to)
        self._active = to % len(self.folders)

    def interrupted(self, to: int) -> None:
        """End a switch before its activation."""
        to %= len(self.folders)
        if to != self._active:
            carry_closed(self.folders[to], self.folders[self._active])

    def rebuild(self, missing: int) -> None:
        """Activate a new generation, whose state lacks the events of windows until a time."""
        self.folders.append(generation(0, missing))
        self._watermarks.append(0)
        self.switch(len(self.folders) - 1)

    def run(self, until: int) -> None:
        """Let the job of the active generation publish what is over, and commit its watermark."""
        folder, former = self.folders[self._active], self._watermarks[self._active]
        self.require_over(folder, former)
        if until > former:
            windows = stored_windows(folder)
            self.published.update(start for start in STARTS if former < start <= until and not windows.has(time(start)))
            self._watermarks[self._active] = until
            commit(folder, until)
            self.require_published(folder, range(former + 1, until + 1))

    def require_published(self, folder: Any, starts: range) -> None:
        """Require that each of these windows was published once, but those that the state lacks."""
        missing = stored_windows(folder).missing
        for start in starts:
            assert self.published[start] <= 1, "a window is published twice"
            assert self.published[start] or start <= missing, "a window is lost"

    def require_over(self, folder: Any, watermark: int) -> None:
        """Require that a rebuild reads the events of each window that its active generation has to publish."""
        windows, over = stored_windows(folder), over_until(folder) or 0
        assert all(start <= watermark or windows.has(time(start)) for start in STARTS if start <= over)
        assert over + 1 > watermark
        assert not windows.has(time(over + 1))


STEPS = st.tuples(st.sampled_from(["switch", "interrupted", "rebuild", "run"]), st.integers(STARTS[0], STARTS[-1]))


@given(st.lists(STEPS, max_size=12))
def test_each_window_is_published_once_unless_the_state_lacks_its_events(steps: list[tuple[str, int]]) -> None:
    generations = Generations()
    for step, amount in steps:
        getattr(generations, step)(amount)
    generations.run(STARTS[-1])
