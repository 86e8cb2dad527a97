"""A state of flights with an index and a history, and what is behind an instance that serves it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from contracts.model.named_state import QueryOptions
from tests.services.query.in_memory import MemoryRouting, ScratchStore, a_state

if TYPE_CHECKING:
    from tests.services.query.http.instance import Instance

FLIGHTS = replace(
    a_state(
        lifetime=timedelta(hours=1),
        query=QueryOptions(history=3, indexes=("state.status",), stale_after=timedelta(seconds=2)),
    ),
    event_offset="event_offset",
)


def store(instance: Instance) -> ScratchStore:
    found = instance.dependencies.stores["flights"]
    assert isinstance(found, ScratchStore)
    return found


def routing(instance: Instance) -> MemoryRouting:
    found = instance.dependencies.routing
    assert isinstance(found, MemoryRouting)
    return found
