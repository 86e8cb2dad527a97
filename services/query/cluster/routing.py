"""The routing table: the role of this instance for each partition, and the instances that answer for the others."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contracts.model.named_state import NamedState


class Role(StrEnum):
    """The role of an instance for a partition."""

    OWNER = "owner"
    """The consumer group assigned it to this instance, which has caught up and has the lease."""
    STANDBY = "standby"
    """A replica with the lease: it answers while the owner is away, and has all that the owner can have returned."""
    CATCHING_UP = "catching_up"
    """Assigned to this instance, which does not have all yet that an earlier owner may have returned."""
    ELSEWHERE = "elsewhere"
    """Another instance answers for it."""


class PartitionStatus(NamedTuple):
    """The role of this instance for a partition now; `lag` is the number of records that it has not applied yet."""

    role: Role
    lag: int


class Member(NamedTuple):
    """An instance of the service, as it announced itself. `url` has scheme, host and port."""

    instance: str
    url: str


class Routing(Protocol):
    """Read before every response, on the event loop: all methods are cheap, but for the coroutine."""

    def partition_status(self, state: str, partition: int) -> PartitionStatus:
        """Return the role and lag of this instance for the partition."""

    async def end_offsets(self, state: str, partitions: Collection[int]) -> dict[int, int]:
        """Request the end offsets of partitions from the brokers; those without a response in time are left out."""

    def owners(self, state: str, partition: int) -> Sequence[Member]:
        """Return the other instances that may answer for it, the owner first; none while that is unknown."""

    def members(self) -> Sequence[Member]:
        """Return all live instances, this one included."""


class StateRoles(NamedTuple):
    """The roles of this instance for the partitions of a state."""

    partitions: Counter[Role]
    lags: Counter[Role]
    """The unapplied records of the partitions, by role."""
    unowned: int
    """Partitions for which no known instance answers."""


def roles_of(state: NamedState, routing: Routing) -> StateRoles:
    """Return the roles of this instance for a state now."""
    partitions, lags, unowned = Counter[Role](), Counter[Role](), 0
    for number in range(state.partitions):
        role, lag = routing.partition_status(state.name, number)
        partitions[role] += 1
        lags[role] += lag
        unowned += role not in (Role.OWNER, Role.STANDBY) and not routing.owners(state.name, number)
    return StateRoles(partitions, lags, unowned)
