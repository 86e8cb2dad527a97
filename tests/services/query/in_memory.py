"""A store, routing and dependencies in memory, for tests of the layers above them."""

from __future__ import annotations

import asyncio
import time
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from contracts.model.named_state import NamedState, QueryOptions
from services.query.cluster.routing import Member, PartitionStatus, Role
from services.query.dependencies import Dependencies
from services.query.settings import QuerySettings
from services.query.store import (
    Change,
    Entry,
    Page,
    Position,
    Scan,
    Store,
    Update,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import timedelta

NOW = 1_700_000_000_000
"""The time in tests, in milliseconds since 1970."""


class MemoryStore:
    """A Store with versions in lists. Windows expire `lifetime` milliseconds after their start."""

    def __init__(self, lifetime: int | None = None, history: int = 1) -> None:
        self.lifetime = lifetime
        self.history = history
        self.entries: dict[str, list[Entry]] = {}
        self.positions: dict[int, int] = {}
        self.seen = 0

    def get(self, key: str) -> Entry | None:
        found = self.entries.get(key)
        return found[-1] if found else None

    def get_many(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        return [self.get(key) for key in keys]

    def versions(self, key: str) -> Sequence[Entry]:
        return self.entries.get(key, [])

    def scan(self, scan: Scan) -> Page:
        silent = scan.silent
        found = [
            (Position(kept[-1].event_time // 1000 if silent else 0, key), kept[-1])
            for key, kept in self.entries.items()
        ]
        wanted = [
            (position, entry)
            for position, entry in sorted(found, key=itemgetter(0))
            if position.key.startswith(scan.prefix)
            and (silent is None or silent.since <= position.number < silent.until)
            and (scan.after is None or position > scan.after)
            and entry.partition in scan.partitions
            and not self.is_expired(entry)
            and all(f'"{value}"'.encode() in entry.value for value in scan.where.values())
        ]
        return Page(wanted[: scan.limit], wanted[scan.limit - 1][0] if len(wanted) > scan.limit else None)

    def key_count(self) -> int:
        return len(self.entries)

    def watermark(self) -> int:
        return self.seen

    def advance_watermark(self, watermark: int) -> None:
        self.seen = max(self.seen, watermark)

    def is_expired(self, entry: Entry) -> bool:
        return entry.window_start < self.oldest_live_window()

    def oldest_live_window(self) -> int:
        return 0 if self.lifetime is None else self.seen - self.lifetime

    def position(self, partition: int) -> int | None:
        return self.positions.get(partition)

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> list[Change]:
        changes = [change for update in updates for change in self._applied(update)]
        self.positions.update(positions)
        return changes

    def put(self, key: str, **facts: Any) -> Entry:
        """Apply one entry with these fields; the others have defaults."""
        usual: dict[str, Any] = {
            "window_start": NOW,
            "epoch": 0,
            "version": 1,
            "event_time": NOW,
            "partition": 0,
            "offset": 7,
            "value": b'{"a":{"b":1}}',
        }
        entry = Entry(**(usual | facts))
        self.apply([Update(key, entry.partition, entry.offset, entry)], {entry.partition: entry.offset + 1})
        return entry

    def clear_partition(self, partition: int) -> bool:
        self.positions.pop(partition, None)
        self.entries = {key: found for key, found in self.entries.items() if found[-1].partition != partition}
        return True

    def drop_expired(self) -> None:
        pass

    def caught_up_at(self, partition: int) -> int | None:  # noqa: ARG002  # no topic is behind it
        return None

    def mark_caught_up(self, times: Mapping[int, int]) -> None:
        pass

    def is_clear_pending(self, partition: int) -> bool:  # noqa: ARG002  # it forgets all at once
        return False

    def finish_bulk_load(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _applied(self, update: Update) -> list[Change]:
        entry, known = update.entry, self.get(update.key)
        if entry is None:
            if known and update.window_start not in (None, known.window_start):
                return []
            self.entries.pop(update.key, None)
        elif known and known.order >= entry.order:
            return []
        else:
            kept = (
                self.entries[update.key][1 - self.history :]
                if known and known.window_start == entry.window_start
                else []
            )
            self.entries[update.key] = [*(kept if self.history > 1 else []), entry]
            self.seen = max(self.seen, entry.window_start)
        return [Change("", update.key, entry)]


class MemoryRouting:
    """Routing that a test sets: by default this instance owns all partitions."""

    def __init__(self) -> None:
        self.own = PartitionStatus(Role.OWNER, 0)
        self.others: dict[int, PartitionStatus] = {}
        self.known: list[Member] = []

    def partition_status(self, state: str, partition: int) -> PartitionStatus:  # noqa: ARG002  # all states alike
        return self.others.get(partition, self.own)

    def owners(self, state: str, partition: int) -> Sequence[Member]:  # noqa: ARG002  # all partitions alike
        return self.known

    def members(self) -> Sequence[Member]:
        return self.known


def a_state(
    name: str = "flights", *, lifetime: timedelta | None = None, query: QueryOptions | None = None
) -> NamedState:
    """Return a state of four partitions."""
    return NamedState(name, f"{name}-topic", {"type": "object"}, 4, lifetime=lifetime, query=query or QueryOptions())


def dependencies_of(
    *states: NamedState,
    stores: Mapping[str, Store] | None = None,
    routing: MemoryRouting | None = None,
    **overrides: Any,
) -> Dependencies:
    """Return the dependencies of an instance with these states and settings. The time of day is NOW."""
    usual: dict[str, Any] = {"application": "none:none", "http_port": 0, "instance": "one", "stop_within": 0.1}
    lifetimes = {state.name: int(state.lifetime.total_seconds() * 1000) if state.lifetime else None for state in states}
    made: dict[str, Store] = {state.name: MemoryStore(lifetimes[state.name], state.query.history) for state in states}
    assert overrides.keys() <= QuerySettings.model_fields.keys(), overrides
    settings = QuerySettings(**(usual | overrides))
    return Dependencies(
        settings=settings,
        states={state.name: state for state in states},
        stores=stores or made,
        routing=routing or MemoryRouting(),
        counts=Counts(CATALOGUE),
        now=lambda: NOW,
        clock=time.monotonic,
    )


async def until(condition: Callable[[], bool], within_s: float = 10) -> None:
    """Run the event loop until the condition holds."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.001)
