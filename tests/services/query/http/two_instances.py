"""Two instances with the departures: the first has the even partitions, the second the odd ones."""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from contracts.wire.partition import partition
from services.query.cluster import Member, PartitionStatus, Role
from tests.services.query.http.instance import Instance, Peers, answering
from tests.services.query.in_memory import MemoryRouting
from tests.services.query.windowed import DEPARTURES, Departures, departures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any

    from contracts.model.named_state import NamedState


class TwoInstances(NamedTuple):
    """Two instances, and the stores that tests write."""

    one: Instance
    other: Instance
    written: tuple[Departures, Departures]

    def put(self, key: str, hour: float, **facts: Any) -> None:
        """Write a snapshot to the owner of the key."""
        self.written[owner_of(key)].put(key, hour, **facts)


@asynccontextmanager
async def two_instances(folder: Path, state: NamedState = DEPARTURES) -> AsyncIterator[TwoInstances]:
    """Serve two instances, each of which answers for every key."""
    peers, made, written = Peers(), [], []
    with ExitStack() as stack:
        for own, name in enumerate(("one", "two")):
            routing = MemoryRouting()
            routing.others = {number: PartitionStatus(Role.ELSEWHERE, 0) for number in range(4) if number % 2 != own}
            routing.known = [Member(("two", "one")[own], "http://unused")]
            dependencies, store = stack.enter_context(
                departures(folder / name, routing=routing, instance=name, state=state)
            )
            made.append(dependencies)
            written.append(store)
        async with (
            answering(made[0], hot=True, peer_client=peers) as one,
            answering(made[1], hot=True, peer_client=peers) as other,
        ):
            peers.instances = {"one": one, "two": other}
            yield TwoInstances(one, other, (written[0], written[1]))


def owner_of(key: str) -> int:
    """Return the index of the instance that owns the key."""
    return partition(key.encode(), DEPARTURES.partitions) % 2
