"""The route to each partition: this instance, another one, or none at present."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.wire.partition import partition as partition_of
from services.query.lookup.state_reader import ANSWERING_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contracts.model.named_state import NamedState
    from services.query.cluster import Routing

LOCAL = ""
"""The route to a partition that this instance serves. The route to another instance is its URL."""


class RouteChange(NamedTuple):
    """The previous and the new route to a partition; None if no instance serves it."""

    state: str
    partition: int
    previous: str | None
    route: str | None


class RoutingTable:
    """Routes as of the last `refresh`.

    All streams therefore move at one moment, and read what they may have missed at that moment.
    """

    def __init__(self, states: Mapping[str, NamedState], routing: Routing) -> None:
        self._states = states
        self._routing = routing
        self._routes: dict[tuple[str, int], str | None] = {}

    def route(self, state: str, partition: int) -> str | None:
        """The route to the partition."""
        return self._routes.get((state, partition))

    def partition(self, state: str, key: str) -> int:
        """The partition of the key."""
        return partition_of(key.encode(), self._states[state].partitions)

    def has_local(self) -> bool:
        """Whether this instance serves any partition."""
        return LOCAL in self._routes.values()

    def local_partitions(self, state: str) -> list[int]:
        """The partitions that this instance serves."""
        return [one for one in range(self._states[state].partitions) if self.route(state, one) == LOCAL]

    def has_lost(self, partitions: Iterable[tuple[str, int]]) -> bool:
        """Whether this instance no longer answers for one of these that it served at the last `refresh`."""
        return any(self.route(*one) == LOCAL and not self._is_local(*one) for one in partitions)

    def refresh(self) -> list[RouteChange]:
        """Update the routes; returns those that changed."""
        changes = []
        for state in self._states.values():
            for partition in range(state.partitions):
                route = self._find(state.name, partition)
                previous = self._routes.get((state.name, partition))
                if route != previous:
                    self._routes[state.name, partition] = route
                    changes.append(RouteChange(state.name, partition, previous, route))
        return changes

    def _find(self, state: str, partition: int) -> str | None:
        if self._is_local(state, partition):
            return LOCAL
        owners = self._routing.owners(state, partition)
        return owners[0].url if owners else None

    def _is_local(self, state: str, partition: int) -> bool:
        return self._routing.partition_status(state, partition).role in ANSWERING_ROLES
