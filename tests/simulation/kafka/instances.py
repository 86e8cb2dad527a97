"""The operations of a script on static members: instances start, are started again, and stop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.runtime.errors import ConsumerFailedError
from tests.deadline import DEADLINE_S
from tests.simulation.kafka.operations import PARTITIONS, Write

if TYPE_CHECKING:
    from collections.abc import Collection

    from services.runtime.kafka.assignment_interfaces import StaticMember
    from services.runtime.kafka.values import Partition
    from tests.simulation.kafka.worlds import World

SHARED = 2 * PARTITIONS
PAUSE_S = 0.05


class Instance:
    """A process of an instance, and the partitions that are assigned to it."""

    def __init__(self, member: StaticMember) -> None:
        self.assigned: frozenset[Partition] = frozenset()
        self.task = asyncio.create_task(member.run(self._assign))

    def _assign(self, partitions: Collection[Partition]) -> None:
        self.assigned = frozenset(partitions)

    async def stop(self) -> str | None:
        """Stop the process; return why it has stopped by itself."""
        self.task.cancel()
        (error,) = await asyncio.gather(self.task, return_exceptions=True)
        return "fenced" if isinstance(error, ConsumerFailedError) and "fenced" in error.detail else None


@dataclass(frozen=True)
class Start(Write):
    """Starts an instance. An earlier process of it ends by itself. Returns why, and what is shared at last."""

    name: str

    def run(self, world: World) -> object:
        async def started() -> object:
            earlier = world.instances.get(self.name)
            world.instances[self.name] = Instance(world.new_static(self.name))
            if earlier is not None:
                await asyncio.wait([earlier.task], timeout=DEADLINE_S)
            return earlier and await earlier.stop(), await _shared(world)

        return world.run(started())


@dataclass(frozen=True)
class Stop(Write):
    """Stops an instance. The others get its partitions when its session has ended. Returns what is shared at last."""

    name: str

    def run(self, world: World) -> object:
        async def stopped() -> object:
            instance = world.instances.pop(self.name, None)
            return instance and await instance.stop(), await _shared(world)

        return world.run(stopped())


async def _shared(world: World) -> list[Partition]:
    """Wait until all instances together have each partition once, and each instance has one."""
    found: list[Partition] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(found) != (SHARED if world.instances else 0) or not all(_shares(world)):
            await asyncio.sleep(PAUSE_S)
            found = sorted(partition for share in _shares(world) for partition in share)
    return found


def _shares(world: World) -> list[frozenset[Partition]]:
    return [instance.assigned for instance in world.instances.values()]
