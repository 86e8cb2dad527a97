"""From a record's sending to the moment when a reader sees it, and when a thousand subscribers are told."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from bench.harness.errors import RunFailed
from bench.harness.load import keyed
from bench.query.records import FIRST, STATE, TOPIC, checked, key, value
from bench.query.updates import RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.query.doors import Door

BETWEEN_S = 0.02
PUSHES_BETWEEN_S = 0.2
PATIENCE_S = 10.0
WATCHED = 0
"""The key that all subscribers watch; the others of RESERVED are probed by reading."""
VERSION = re.compile(rb'"version":(\d+),')


class NotSeen(RunFailed):
    """A record did not come within PATIENCE_S."""

    def __init__(self, number: int, version: int) -> None:
        super().__init__(f"version {version} of {key(number)} was not seen within {PATIENCE_S:g} s")


class Seen(NamedTuple):
    """Latencies in seconds, and the versions that the probed keys have now."""

    latencies: list[float]
    versions: dict[int, int]


def visible(boot: str, began: str, door: Door, seconds: float) -> Seen:
    """Write a key and read it until the new version is there, again and again. Raises NotSeen."""
    made, random = keyed(boot, linger_ms=0), Random(1)  # noqa: S311  # a load keeps no secret
    versions, latencies = dict.fromkeys(range(1, RESERVED), FIRST), list[float]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(0, 2 * BETWEEN_S))
        number = random.randrange(1, RESERVED)
        versions[number] += 1
        sent = time.monotonic()
        made.produce(TOPIC, value(number, versions[number], began), key(number))
        made.poll(0)
        while (checked(number, door.read(key(number)) or b"") or 0) < versions[number]:
            if time.monotonic() - sent > PATIENCE_S:
                raise NotSeen(number, versions[number])
        latencies.append(time.monotonic() - sent)
    made.flush()
    return Seen(latencies, versions)


class Subscriber(asyncio.Protocol):
    """One stream of server-sent events, of which it notes when each version came."""

    def __init__(self, came: Callable[[int, float], None]) -> None:
        self._came = came
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the key."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # of a TCP connection it is
        transport.write(f"GET /v1/states/{STATE}/{key(WATCHED)}/watch HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """An event ends with an empty line; its record has one version behind the answer's own."""
        now = time.monotonic()
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if b"event: state" in event and (found := VERSION.search(event)):
                self._came(int(found[1]), now)


def pushed(boot: str, began: str, port: int, subscribers: int, seconds: float) -> Seen:
    """Write one key that all of so many subscribers watch, again and again. Raises NotSeen."""
    return asyncio.run(_pushed(boot, began, port, subscribers, seconds))


async def _pushed(boot: str, began: str, port: int, subscribers: int, seconds: float) -> Seen:
    loop, made, version = asyncio.get_running_loop(), keyed(boot, linger_ms=0), FIRST
    arrivals, sent = Arrivals(subscribers), dict[int, float]()
    streams = []
    for _ in range(subscribers):
        stream, _ = await loop.create_connection(lambda: Subscriber(arrivals.note), "127.0.0.1", port)
        streams.append(stream)
    await arrivals.of(FIRST)
    end = loop.time() + seconds
    while loop.time() < end:
        version += 1
        sent[version] = time.monotonic()
        made.produce(TOPIC, value(WATCHED, version, began), key(WATCHED))
        made.poll(0)
        await asyncio.sleep(PUSHES_BETWEEN_S)
    await arrivals.of(version)
    for stream in streams:
        stream.abort()
    made.flush()
    return Seen(
        [at - sent[one] for one, times in arrivals.times.items() if one in sent for at in times], {WATCHED: version}
    )


class Arrivals:
    """When each version came to each of so many subscribers."""

    def __init__(self, subscribers: int) -> None:
        self.times: defaultdict[int, list[float]] = defaultdict(list)
        self._subscribers = subscribers
        self._complete: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def note(self, version: int, at: float) -> None:
        """It came to one of them."""
        self.times[version].append(at)
        if len(self.times[version]) == self._subscribers:
            self._complete[version].set()

    async def of(self, version: int) -> None:
        """Wait until all have it. Raises NotSeen."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._complete[version].wait()
        except TimeoutError:
            raise NotSeen(WATCHED, version) from None
