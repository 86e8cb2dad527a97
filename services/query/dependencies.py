"""The dependencies that the parts of the service share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contracts.metrics.counts import Counts
    from contracts.model.named_state import NamedState
    from services.query.cluster.routing import Roles
    from services.query.settings import QuerySettings
    from services.query.store.store import Store


@dataclass(frozen=True)
class Parts:
    """The states with their stores, by name, and what the answers about them depend on."""

    settings: QuerySettings
    states: Mapping[str, NamedState]
    stores: Mapping[str, Store]
    roles: Roles
    counts: Counts
    now: Callable[[], int]
    """The time, in milliseconds since 1970."""
    clock: Callable[[], float]
    """A monotonic clock, in seconds."""
    misplaced: Mapping[str, int] = field(default_factory=dict)
    """How many keys, of some that were looked at, are not where a key is looked for, by state."""
