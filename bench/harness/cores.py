"""Assigns a core to the measured process, and the others to all other processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PINNED = ("taskset", "-c", "{core}")
"""The prefix of a command that runs on that core alone."""


def measured() -> int:
    """The core that they are pinned to: the last one that we may use."""
    return max(os.sched_getaffinity(0))


@contextmanager
def left_to(core: int, *pids: int) -> Iterator[None]:
    """Keep these processes, and what they start, from this core; where there is no other one, nothing is done."""
    before = os.sched_getaffinity(0)
    _pin(pids, before - {core} or before)
    try:
        yield
    finally:
        _pin(pids, before)


def _pin(pids: tuple[int, ...], cores: set[int]) -> None:
    """Each thread of a process has its own; new ones have that of the thread that starts them."""
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)
