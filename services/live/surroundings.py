"""What the view shows besides records: the launcher's parts, and the calls that the workers counted in their logs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

TAIL = 8 * 1024
STALE = timedelta(seconds=15)
"""A worker that has counted nothing for so long is not there."""


@dataclass(frozen=True)
class Surroundings:
    """What is known now; None is unknown."""

    worker_lag: int | None = None
    calls: Mapping[str, float] | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    trouble: str | None = None


@dataclass(frozen=True)
class Counted:
    """What a worker had counted at some time: its calls by outcome, since it was started."""

    at: datetime
    calls: Mapping[str, int]


def parts(status: Path | None) -> Mapping[str, str]:
    """What the launcher says of its parts; nothing without a launcher."""
    try:
        return dict(json.loads(status.read_text(encoding="utf-8"))) if status else {}
    except (OSError, ValueError):
        return {}


def calls(logs: Path | None, now: datetime) -> Mapping[str, float] | None:
    """The rates of the calls of all workers, by outcome; None when no worker's log tells."""
    if logs is None:
        return None
    counted = [last_two(_tail(log).splitlines()) for log in sorted(logs.glob("worker-*.log"))]
    current = [pair for pair in counted if pair is not None and now - pair[1].at < STALE]
    total: Counter[str] = Counter()
    for before, after in current:
        total.update(growth(before, after))
    return dict(sorted(total.items())) if current else None


def last_two(lines: Iterable[str]) -> tuple[Counted, Counted] | None:
    """The last two counts of a worker's log; None when there are no two."""
    found = [counted for counted in map(_counted, lines) if counted is not None][-2:]
    return (found[0], found[1]) if len(found) == 2 else None  # noqa: PLR2004  # two are a pair


def growth(before: Counted, after: Counted) -> dict[str, float]:
    """Calls per second between two counts; a worker that was started again begins at 0."""
    seconds = (after.at - before.at).total_seconds()
    begun_anew = any(after.calls.get(outcome, 0) < count for outcome, count in before.calls.items())
    if seconds <= 0 or begun_anew:
        return {}
    return {outcome: (count - before.calls.get(outcome, 0)) / seconds for outcome, count in after.calls.items()}


def _counted(line: str) -> Counted | None:
    if '"calls":{' not in line:
        return None
    try:
        facts = json.loads(line)
        return Counted(datetime.fromisoformat(facts["ts"]), facts["calls"])
    except (ValueError, KeyError):
        return None


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL))
        return file.read().decode(errors="replace")
