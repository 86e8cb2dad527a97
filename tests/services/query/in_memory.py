"""Stores that last as long as a test, and routing and dependencies in memory, for tests of the layers above them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from contracts.model.named_state import NamedState, QueryOptions
from services.query.cluster.routing import Member, PartitionStatus, Role
from services.query.dependencies import Dependencies
from services.query.settings import QuerySettings
from services.query.store import Entry, Store, Update
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import timedelta

    from services.query.store.environment import Databases
    from services.query.store.folder import StoreFolder

NOW = 1_700_000_000_000
"""The time in tests, in milliseconds since 1970."""
OPEN: list[Callable[[], Any]] = []
"""What closes the stores that are open: those of a module's fixtures, and then those of the present test."""


class ScratchStore(Store):
    """A store in a folder of its own, which ends with the process or with the store."""

    def __init__(self, state: NamedState | None = None) -> None:
        super().__init__(Path(tempfile.mkdtemp()), state or a_state(), "boot")
        self.finish_bulk_load()
        self._end = weakref.finalize(self, _end, self._databases, self._folder)
        OPEN.append(self._end)

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

    def clear(self) -> None:
        """Delete all entries."""
        for number in range(self._state.partitions):
            while not self.clear_partition(number):
                pass

    @override
    def close(self) -> None:
        self._end()


def close_scratch_stores(before: int = 0) -> None:
    """Close the stores that were made after the first ones, of which there are so many."""
    while len(OPEN) > before:
        OPEN.pop()()


def _end(databases: Databases, folder: StoreFolder) -> None:
    databases.close()
    folder.release()
    shutil.rmtree(folder.path)


class MemoryRouting:
    """Routing that a test sets: by default this instance owns all partitions."""

    def __init__(self) -> None:
        self.own = PartitionStatus(Role.OWNER, 0)
        self.others: dict[int, PartitionStatus] = {}
        self.known: list[Member] = []
        self.ends: dict[int, int] = {}
        self.stores: Mapping[str, Store] = {}
        """Where partitions end of which `ends` has none."""

    def partition_status(self, state: str, partition: int) -> PartitionStatus:  # noqa: ARG002  # all states alike
        return self.others.get(partition, self.own)

    async def end_offsets(self, state: str, partitions: Collection[int]) -> dict[int, int]:
        return {one: self.ends.get(one, self.stores[state].position(one) or 0) for one in partitions}

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
    assert overrides.keys() <= QuerySettings.model_fields.keys(), overrides
    settings = QuerySettings(**(usual | overrides))
    routing = routing or MemoryRouting()
    routing.stores = stores = stores or {state.name: ScratchStore(state) for state in states}
    return Dependencies(
        settings=settings,
        states={state.name: state for state in states},
        stores=stores,
        routing=routing,
        counts=Counts(CATALOGUE),
        now=lambda: NOW,
        clock=time.monotonic,
    )


async def until(condition: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
    """Run the event loop until the condition holds."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.001)
