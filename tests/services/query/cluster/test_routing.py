"""The roles of an instance for a state, and the partitions that no instance owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contracts.model.named_state import NamedState
from services.query.cluster import Member, PartitionStatus, Role, roles_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

FLIGHTS = NamedState(name="flights", topic="snapshots", schema={}, partitions=4)


class EqualRoles:
    """An instance with the same role for all partitions."""

    def __init__(self, role: Role, *others: str) -> None:
        self._role, self._others = role, others

    def partition_status(self, _state: str, _partition: int) -> PartitionStatus:
        return PartitionStatus(self._role, 2)

    async def end_offsets(self, _state: str, _partitions: Collection[int]) -> dict[int, int]:
        return {}

    def owners(self, _state: str, _partition: int) -> Sequence[Member]:
        return [Member(name, f"http://{name}:1") for name in self._others]

    def members(self) -> Sequence[Member]:
        return ()


@pytest.mark.parametrize(
    ("roles", "unowned"),
    [
        (EqualRoles(Role.OWNER), 0),
        (EqualRoles(Role.STANDBY), 0),
        (EqualRoles(Role.ELSEWHERE, "other"), 0),
        (EqualRoles(Role.ELSEWHERE), 4),
        (EqualRoles(Role.CATCHING_UP), 4),
        (EqualRoles(Role.CATCHING_UP, "other"), 0),
    ],
)
def test_a_partition_is_unowned_if_no_instance_answers_for_it(roles: EqualRoles, unowned: int) -> None:
    found = roles_of(FLIGHTS, roles)
    ((role, partitions),) = found.partitions.items()
    assert (partitions, found.lags, found.unowned) == (4, {role: 8}, unowned)
