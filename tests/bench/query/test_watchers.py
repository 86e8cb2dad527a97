"""The program in C that watches one key over many connections, against a server that writes what the test gives."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from bench.query.generators import LoadFailedError
from bench.query.watchers import Watchers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="without a C compiler")
MANY, WITHIN_S = 50, 10.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 1000\n\n"
MARK = b'event: mark\ndata: {"version":9}\n\n'


class FakeService:
    """The connections, all of which get the same."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HEAD)
        self.writers.append(writer)

    async def send(self, *pieces: bytes) -> None:
        """Each piece by itself, so that events are cut where they are."""
        for piece in pieces:
            for writer in self.writers:
                writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def watching() -> AsyncIterator[tuple[FakeService, Watchers]]:
    service = FakeService()
    async with await asyncio.start_server(service.connected, "127.0.0.1", 0) as server:
        service.port = server.sockets[0].getsockname()[1]
        with Watchers(service.port, "/v1/states/keys/k1/watch", MANY) as watchers:
            async with asyncio.timeout(WITHIN_S):
                while len(service.writers) < MANY:  # noqa: ASYNC110  # no event reports it
                    await asyncio.sleep(0.01)
            yield service, watchers
        for writer in service.writers:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()


def state(version: int) -> bytes:
    data = b'{"key":"k1","version":%d,"value":{"version":%d,"text":"xxx"}}' % (version, version)
    return b"event: state\nid: 1.%d\ndata: %b\n\n" % (version, data)


async def test_each_version_is_recorded_also_if_it_arrives_in_pieces() -> None:
    async with watching() as (service, watchers):
        began = time.monotonic()
        await service.send(state(1)[:40], state(1)[40:] + MARK + state(2), state(3)[:-1])
        assert await asyncio.to_thread(watchers.have, 2, WITHIN_S)
        assert not await asyncio.to_thread(watchers.have, 3, 0.1), "its end has not come"
        await service.send(b"\n")
        assert await asyncio.to_thread(watchers.have, 3, WITHIN_S)
        came = await asyncio.to_thread(watchers.arrivals)
        assert {version: len(times) for version, times in came.items()} == {1: MANY, 2: MANY, 3: MANY}
        assert all(began <= at <= time.monotonic() for times in came.values() for at in times)
        assert all(one.startswith(b"GET /v1/states/keys/k1/watch HTTP/1.1\r\n") for one in service.requests)


async def test_a_version_that_one_does_not_have_is_not_there() -> None:
    async with watching() as (service, watchers):
        *most, late = service.writers
        for writer in most:
            writer.write(state(1))
        assert not await asyncio.to_thread(watchers.have, 1, 0.2)
        late.write(MARK)
        await service.send(state(2))
        assert await asyncio.to_thread(watchers.have, 1, WITHIN_S), "a later one stands for it"


async def test_a_connection_that_closes_is_reported() -> None:
    async with watching() as (service, watchers):
        service.writers[0].close()
        with pytest.raises(LoadFailedError, match="a connection: the service ended it"):
            await asyncio.to_thread(watchers.have, 1, WITHIN_S)


def test_a_refused_connection_is_reported() -> None:
    with Watchers(1, "/", 1) as watchers, pytest.raises(LoadFailedError, match="connecting: Connection refused"):
        watchers.have(1, WITHIN_S)
