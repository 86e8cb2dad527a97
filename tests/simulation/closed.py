"""Judges the snapshots of `Emit.CLOSE`: one of each window, when it is over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from contracts.wire import Snapshot
    from tests.simulation.oracle import State, Window
    from tests.simulation.script import Script


def closed_problems(
    script: Script,
    snapshots: Sequence[tuple[datetime, Snapshot]],
    windows: Mapping[Window, State],
    kept_for: timedelta,
) -> Iterator[str]:
    """Each snapshot has all events of its window, and comes after the end: once in an epoch, if the job has no fault.

    `snapshots` have the times at which they were written, `windows` the states that all events give.
    """
    times: Counter[tuple[Window, int]] = Counter()
    for written_at, snapshot in snapshots:
        window, state = snapshot.window, windows.get(snapshot.window)
        times[window, snapshot.epoch] += 1
        if state is not None and snapshot.state != state:
            yield f"{window} is closed with {snapshot.state}, and its events give {state}"
        if written_at <= window[1] + kept_for:
            yield f"{window} is closed at {written_at:%H:%M:%S}, before its end"
    if not any(fault.part in {"job", "broker"} for fault in script.faults):
        for (window, _), count in times.items():
            if count > 1:
                yield f"{window} is closed {count} times"
