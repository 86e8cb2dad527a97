"""The objects that lookups, push, HTTP and the console share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contracts.metrics.counts import Counts
    from contracts.model.named_state import NamedState
    from services.query.cluster import Routing
    from services.query.settings import QuerySettings
    from services.query.store import Store


@dataclass(frozen=True)
class Dependencies:
    """The named states and their stores, by name, and what responses about them need."""

    settings: QuerySettings
    states: Mapping[str, NamedState]
    stores: Mapping[str, Store]
    routing: Routing
    counts: Counts
    now: Callable[[], int]
    """The time, in milliseconds since 1970."""
    clock: Callable[[], float]
    """A monotonic clock, in seconds."""
    misplaced: Mapping[str, int] = field(default_factory=dict)
    """The number of sampled keys, by state, that are not in the partition of their hash."""
