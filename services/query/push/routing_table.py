"""Where each partition is answered for: here, at another instance, or nowhere for now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster.routing import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.model.named_state import NamedState
    from services.query.cluster.routing import Roles

LOCAL = ""
"""The place of what this instance answers for; that of others is their url."""
ANSWERS = (Role.OWNER, Role.STANDBY)


class RouteChange(NamedTuple):
    """A partition is answered for at another place than before; None: nowhere."""

    state: str
    partition: int
    place: str | None


class RoutingTable:
    """Looks at the roles when told to, and holds what it saw until then.

    So streams move at one moment, and read what they may have missed at that moment.
    """

    def __init__(self, states: Mapping[str, NamedState], roles: Roles) -> None:
        self._states = states
        self._roles = roles
        self._places: dict[tuple[str, int], str | None] = {}

    def place(self, state: str, partition: int) -> str | None:
        """Where it was answered for at the last look."""
        return self._places.get((state, partition))

    def answers(self) -> bool:
        """Whether this instance answers for anything."""
        return LOCAL in self._places.values()

    def here(self, state: str) -> list[int]:
        """The partitions that this instance answers for."""
        return [one for one in range(self._states[state].partitions) if self.place(state, one) == LOCAL]

    def nowhere(self, state: str) -> list[int]:
        """The partitions that nobody answers for now."""
        return [one for one in range(self._states[state].partitions) if self.place(state, one) is None]

    def look(self) -> list[RouteChange]:
        """What has moved since the last look."""
        moves = []
        for state in self._states.values():
            for partition in range(state.partitions):
                place = self._seen(state.name, partition)
                if place != self._places.get((state.name, partition)):
                    self._places[state.name, partition] = place
                    moves.append(RouteChange(state.name, partition, place))
        return moves

    def _seen(self, state: str, partition: int) -> str | None:
        if self._roles.standing(state, partition).role in ANSWERS:
            return LOCAL
        owners = self._roles.owners(state, partition)
        return owners[0].url if owners else None
