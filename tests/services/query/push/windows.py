"""Instances with departures, which a test writes, and the messages of clients that watch them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from services.query.cluster import Member, PartitionStatus, Role
from tests.services.query.in_memory import MemoryRouting
from tests.services.query.push.serving import RARE, Client, Instance
from tests.services.query.windowed import DEPARTURES, HOUR, NOON, Departures, answered_at, departures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from services.query.limits import WatchLimits
    from services.query.store import Change


class Watched:
    """An instance with departures, which fans out what a test writes."""

    def __init__(self, instance: Instance, written: Departures) -> None:
        self.instance = instance
        self.written = written

    def put(self, key: str, hour: int, version: int = 1, **state: Any) -> None:
        self._changed(self.written.put(key, hour, version, **state))

    def remove(self, key: str, hour: int) -> None:
        self._changed(self.written.remove(key, hour))

    def close(self, hour: int) -> None:
        """Advance the watermark until the window that starts at this hour is closed."""
        self.written.store.advance_watermark(NOON + (hour + 1) * HOUR)

    def _changed(self, changes: Sequence[Change]) -> None:
        self.instance.watching.changed(changes)


@asynccontextmanager
async def serving(
    folder: Path, routing: MemoryRouting | None = None, name: str = "one", limits: WatchLimits = RARE
) -> AsyncIterator[Watched]:
    with departures(folder / name, routing=routing, instance=name) as (dependencies, written):
        async with Instance(DEPARTURES, dependencies=dependencies, limits=limits).serving() as instance:
            yield Watched(instance, written)


@asynccontextmanager
async def relaying_to(
    folder: Path, own_partitions: Sequence[int] = (), limits: WatchLimits = RARE
) -> AsyncIterator[tuple[Watched, Watched, MemoryRouting]]:
    """Two instances, and the routing of the first, which serves these partitions only; the second serves all."""
    routing = MemoryRouting()
    others = set(range(DEPARTURES.partitions)) - set(own_partitions)
    routing.others = {one: PartitionStatus(Role.ELSEWHERE, 0) for one in sorted(others)}
    async with serving(folder, name="two", limits=limits) as owner:
        routing.known = [Member("two", owner.instance.base)]
        async with serving(folder, routing, "one", limits) as relaying:
            yield relaying, owner, routing


def seen(message: dict[str, Any]) -> tuple[str, str, int]:
    """Return key, hour after noon and version of a message with a value."""
    answer = message.get("answer", message)
    hour = next(hour for hour in range(-2, 12) if answered_at(hour) == answer["window_start"])
    return answer["key"], str(hour), answer["version"]


async def messages(client: Client, number: int) -> list[tuple[str, str, int]]:
    return [seen(await client.next()) for _ in range(number)]


async def client_values(client: Client, number: int) -> list[tuple[str, str, int]]:
    """Return the next values; other messages are skipped."""
    found: list[tuple[str, str, int]] = []
    while len(found) < number:
        message = await client.next()
        if message["type"] == "state":
            found.append(seen(message))
    return found
