"""Finds the differences between two stores of the same windows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from contracts.wire import Snapshot

    IsLive = Callable[[datetime], bool]
    """Returns whether a window with this start cannot have expired."""

Subject = tuple[str, "datetime | None"]
"""A key and the start of its window; None for the newest window of a key."""
TOLERANCE = 1e-9
"""The relative tolerance: after a crash the job may add the same numbers in another order."""


class Stored(NamedTuple):
    """A snapshot in a store, with the time at which it was written there, where that is known."""

    snapshot: Snapshot
    written: datetime | None = None

    @property
    def position(self) -> tuple[datetime, int, int]:
        """The order of positions of one key: the greater one is newer."""
        return (self.snapshot.first_seen, *self.snapshot.order)


@dataclass(frozen=True)
class StoredSnapshots:
    """The snapshots of one store. `expired` has the keys that the store reports as expired."""

    name: str
    snapshots: Mapping[Subject, Stored]
    expired: frozenset[str] = frozenset()

    def of(self, keys: Collection[str]) -> StoredSnapshots:
        """Return what it has of these keys."""
        chosen = {subject: stored for subject, stored in self.snapshots.items() if subject[0] in keys}
        return StoredSnapshots(self.name, chosen, self.expired)

    def newest(self) -> StoredSnapshots:
        """Return the newest window of each key."""
        newest: dict[Subject, Stored] = {}
        for (key, _), stored in self.snapshots.items():
            known = newest.get((key, None))
            if known is None or known.position < stored.position:
                newest[key, None] = stored
        return StoredSnapshots(self.name, newest, self.expired)


def snapshots_of(name: str, snapshots: Iterable[Snapshot], expired: frozenset[str] = frozenset()) -> StoredSnapshots:
    """Return a store's snapshots by their windows."""
    return StoredSnapshots(name, {snapshot.window: Stored(snapshot) for snapshot in snapshots}, expired)


@dataclass(frozen=True)
class Difference:
    """A difference of two stores in one window."""

    subject: Subject
    earlier: str
    """The name of the store that was read first."""
    later: str
    versions: tuple[Snapshot | None, Snapshot | None]
    """The snapshots of the first store and the second one."""
    problem: str


@dataclass
class ComparisonResult:
    """The result of comparing two stores."""

    earlier: str
    later: str
    equal: int = 0
    newer: int = 0
    """The number of windows of which the later store has a newer version."""
    expired: int = 0
    """The number of windows that one store has dropped after their end."""
    differences: list[Difference] = field(default_factory=list)


def compare(
    earlier: StoredSnapshots, later: StoredSnapshots, is_live: IsLive, committed: datetime | None = None
) -> ComparisonResult:
    """Compare the store that was read first with the one that was read later.

    `committed`: the earlier store has all that was written to the later one before this time.
    """
    result = ComparisonResult(earlier.name, later.name)
    for subject in sorted(earlier.snapshots.keys() | later.snapshots.keys(), key=str):
        first, second = earlier.snapshots.get(subject), later.snapshots.get(subject)
        problem = None
        if second is None and first is not None:
            if is_live(first.snapshot.first_seen) and subject[0] not in later.expired:
                problem = f"the {later.name} lacks it"
            else:
                result.expired += 1
        elif second is not None and (first is None or first.position < second.position):
            if first is None and not is_live(second.snapshot.first_seen):
                result.expired += 1
            elif committed and second.written and second.written < committed:
                problem = f"the {earlier.name} {'lacks it' if first is None else 'is older'}"
            else:
                result.newer += 1
        elif first is not None and second is not None:
            problem = _problem(first, second, later.name)
            result.equal += problem is None
        if problem is not None:
            pair = (first and first.snapshot, second and second.snapshot)
            result.differences.append(Difference(subject, earlier.name, later.name, pair, problem))
    return result


def _problem(first: Stored, second: Stored, later: str) -> str | None:
    """Return the problem of a store that was read later and is not newer."""
    if second.position < first.position:
        return f"the {later} is older"
    fields = list(different_fields(first.snapshot.model_dump(), second.snapshot.model_dump()))
    return f"{', '.join(fields)} of the same version" if fields else None


def different_fields(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two documents differ. An absent field is a null one."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in sorted(first.keys() | second.keys()):
            yield from different_fields(first.get(name), second.get(name), f"{path}.{name}" if path else name)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (first_item, second_item) in enumerate(zip(first, second, strict=True)):
            yield from different_fields(first_item, second_item, f"{path}[{number}]")
    elif not _is_same(first, second):
        yield path


def _is_same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(first == second)
