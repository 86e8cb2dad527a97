"""Judges the snapshots of `Emit.CLOSE`: one of each window, when it is over."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.simulation.oracle import EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from contracts.wire import Snapshot
    from tests.simulation.oracle import State, Window
    from tests.simulation.script import Script

LEAVES_OUT = frozenset({"rebuild", "incomplete", "rollback", "growth"})
"""The faults of the job after which another state leaves out what the former one has published and committed."""
COMMITTED = timedelta(minutes=1)
"""The time within which the job commits what it has published."""


def closed_problems(
    script: Script,
    snapshots: Sequence[tuple[datetime, Snapshot]],
    windows: Mapping[Window, State],
    kept_for: timedelta,
) -> Iterator[str]:
    """Each snapshot has all events of its window, and comes once, after the end. A fault of the job may repeat it.

    `snapshots` have the times at which they were written, `windows` the states that all events give.
    """
    times: dict[Window, list[tuple[datetime, int]]] = defaultdict(list)
    for written_at, snapshot in snapshots:
        window, state = snapshot.window, windows.get(snapshot.window)
        times[window].append((written_at, snapshot.epoch))
        if state is not None and snapshot.state != state:
            yield f"{window} is closed with {snapshot.state}, and its events give {state}"
        if written_at <= window[1] + kept_for:
            yield f"{window} is closed at {written_at:%H:%M:%S}, before its end"
    faults = {fault.kind for fault in script.faults if fault.part in {"job", "broker"}}
    if faults <= LEAVES_OUT:
        for window, found in times.items():
            for (written_at, former), (again_at, epoch) in pairwise(found):
                if epoch == former or written_at + COMMITTED < EPOCH + timedelta(milliseconds=epoch):
                    yield f"{window} is closed at {written_at:%H:%M:%S}, and again at {again_at:%H:%M:%S}"
