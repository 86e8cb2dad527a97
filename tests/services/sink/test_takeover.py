"""The offsets by which a sink judges the position of a partition that it takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from services.runtime.call_thread import CallThread
from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import LATEST, GroupOffset, Partition
from services.sink.takeover import KnownOffsets, known_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLACE = Partition("snapshots", 3)


class OffsetsAdmin:
    """The offsets of a partition, for a group."""

    def __init__(self, fault: str) -> None:
        self._fault = fault

    def committed(self, group: str, partitions: Sequence[Partition]) -> Mapping[Partition, GroupOffset]:
        assert (group, partitions) == ("sinks", [PLACE])
        return {PLACE: GroupOffset(7)}

    def available_offsets(self, at: Mapping[Partition, int]) -> Mapping[Partition, int]:
        assert at == {PLACE: LATEST}
        if self._fault == "no broker":
            raise KafkaRequestError("look offsets up", "_TRANSPORT", "the broker is away")
        return {} if self._fault == "no leader" else {PLACE: 9}


@pytest.mark.parametrize(("fault", "found"), [("", KnownOffsets(7, 9)), ("no broker", None), ("no leader", None)])
async def test_offsets_are_those_of_the_group_and_of_the_topic(fault: str, found: KnownOffsets | None) -> None:
    admin = cast("Any", OffsetsAdmin(fault))
    calls = CallThread("offsets")
    assert await known_offsets(admin, calls, "sinks", "snapshots")(3) == found
    calls.close()


@pytest.mark.parametrize(
    ("committed", "end", "is_of"),
    [(5, 9, True), (4, 9, True), (0, 9, True), (6, 9, False), (-1, 9, False), (5, 8, False)],
)
def test_a_position_is_of_the_topic_in_which_the_group_continues(committed: int, end: int, *, is_of: bool) -> None:
    assert KnownOffsets(committed, end).is_of(9, first=5) == is_of
