"""A windowed state with a real store, for tests of the layers above it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from contracts.model.named_state import NamedState, QueryOptions
from contracts.wire.partition import partition
from services.query.store import Entry, Store, Update
from tests.services.query.in_memory import MemoryRouting, dependencies_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from services.query.dependencies import Dependencies
    from services.query.store import Change

HOUR = 3_600_000
NOON = 1_699_963_200_000
"""2023-11-14T12:00Z: the start of a window, in milliseconds since 1970."""
DEPARTURES = NamedState(
    "departures",
    "departures-topic",
    {"type": "object"},
    4,
    key="device_id",
    windowed=True,
    window=timedelta(hours=1),
    lifetime=timedelta(hours=1),
    grace=timedelta(minutes=5),
    query=QueryOptions(history=3, indexes=("state.flights", "state.carrier"), remember=timedelta(hours=12)),
)


def at(hour: float) -> str:
    """Return a time so many hours after noon, as clients write it."""
    return datetime.fromtimestamp((NOON + hour * HOUR) / 1000, UTC).isoformat().replace("+00:00", "Z")


def answered_at(hour: float) -> str:
    """Return the same time as responses have it."""
    return at(hour).replace("Z", ".000Z")


class Departures:
    """The store of an instance, which tests write."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def put(self, key: str, hour: float, version: int = 1, epoch: int = 0, **state: Any) -> list[Change]:
        """Write a snapshot of the window that starts so many hours after noon."""
        start = NOON + round(hour * HOUR)
        number = partition(key.encode(), DEPARTURES.partitions)
        value = orjson.dumps({"device_id": key, "version": version, "state": state})
        entry = Entry(start, epoch, version, start, number, self.store.position(number) or 0, value)
        return self._apply(Update(key, number, entry.offset, entry))

    def remove(self, key: str, hour: float) -> list[Change]:
        """Write a tombstone of that window."""
        number = partition(key.encode(), DEPARTURES.partitions)
        return self._apply(Update(key, number, self.store.position(number) or 0, None, NOON + round(hour * HOUR)))

    def _apply(self, update: Update) -> list[Change]:
        return self.store.apply([update], {update.partition: update.offset + 1})


@contextmanager
def departures(
    folder: Path, *, routing: MemoryRouting | None = None, instance: str = "one", state: NamedState = DEPARTURES
) -> Iterator[tuple[Dependencies, Departures]]:
    """Give the dependencies of an instance with this state, and its store."""
    store = Store(folder, state, "boot")
    try:
        found = dependencies_of(state, stores={state.name: store}, routing=routing, instance=instance)
        yield found, Departures(store)
    finally:
        store.close()
