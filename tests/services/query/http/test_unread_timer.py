"""A connection is closed when its client takes nothing of what is sent to it, and only then."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from struct import pack_into
from typing import TYPE_CHECKING
from unittest.mock import MagicMock, Mock, patch

import pytest

from services.query.http.client_writer import UNSENT_BYTES, ClientWriter
from services.query.http.connection import IDLE_S, AiohttpConnection, FastConnection
from services.query.http.unread_timer import UnreadTimer, acknowledged
from tests.services.query.http.instance import answering
from tests.services.query.http.test_connection import GET
from tests.services.query.in_memory import ScratchStore, a_state, dependencies_of, until
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Coroutine

MORE_THAN_SOCKETS_BUFFER = 32 * 1024 * 1024
LINUX_ONLY = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the system does not show what a client takes")


class Transport(MagicMock):
    """A transport, and what its client has taken. Without `has_info`, only the size of the write buffer shows it."""

    def send(self, unsent: int, taken: int = 0, *, has_info: bool = True) -> None:
        """Change what is unsent, and what the client has taken."""
        info = bytearray(128 if has_info else 104)
        if has_info:
            pack_into("=Q", info, 120, taken)
        self.get_write_buffer_size.return_value = unsent
        self.get_extra_info.return_value.getsockopt.return_value = bytes(info)


def in_virtual_time(main: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main)


@LINUX_ONLY
def test_a_client_that_reads_less_than_a_socket_buffers_stays_connected() -> None:
    transport = Transport()

    async def read() -> None:
        transport.send(100, 5)
        timer = UnreadTimer(transport, 60)
        for taken in range(6, 10):
            await asyncio.sleep(55)
            transport.send(100, taken)
            transport.abort.assert_not_called()
        await asyncio.sleep(121)
        transport.abort.assert_called_once()
        timer.cancel()

    in_virtual_time(read())


@pytest.mark.parametrize("has_socket", [True, False])
def test_the_write_buffer_shows_what_a_client_takes_where_the_system_does_not(*, has_socket: bool) -> None:
    transport = Transport()

    async def read() -> None:
        transport.send(100, has_info=False)
        if not has_socket:
            transport.get_extra_info.return_value = None
        timer = UnreadTimer(transport, 60)
        for unsent in (90, 50, 49, 48):
            await asyncio.sleep(55)
            transport.get_write_buffer_size.return_value = unsent
            transport.abort.assert_not_called()
        await asyncio.sleep(121)
        transport.abort.assert_called_once()
        timer.cancel()

    in_virtual_time(read())


@LINUX_ONLY
def test_a_response_after_a_pause_has_the_whole_time() -> None:
    transport = Transport()

    async def read() -> None:
        transport.send(0, 5)
        timer = UnreadTimer(transport, 60)
        await asyncio.sleep(59)
        transport.send(100, 5)
        await asyncio.sleep(60)
        transport.abort.assert_not_called()
        await asyncio.sleep(60)
        transport.abort.assert_called_once()
        timer.cancel()

    in_virtual_time(read())


@LINUX_ONLY
def test_a_connection_of_the_fast_path_is_idle_when_all_is_sent() -> None:
    transport = Transport()

    async def read() -> None:
        connection = FastConnection(Mock(), set(), Mock())
        connection.connection_made(transport)
        for taken in range(1, 10):
            transport.send(100, taken)
            await asyncio.sleep(IDLE_S * 0.9)
            transport.abort.assert_not_called()
        transport.send(0, 10)
        await asyncio.sleep(IDLE_S * 2)
        transport.abort.assert_called_once()
        connection.connection_lost(None)

    in_virtual_time(read())


def test_a_watching_client_has_any_time_for_an_item_that_it_reads() -> None:
    request, sent = MagicMock(transport=Transport()), asyncio.Event()
    request.transport.is_closing.return_value = False
    request.transport.send(UNSENT_BYTES + 1)

    async def read() -> None:
        writer = ClientWriter(request, Mock(drain=sent.wait), 60)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writer.drain())
            await asyncio.sleep(600)
            sent.set()
        request.protocol.unread.restart.assert_called_once_with(60)
        request.transport.abort.assert_not_called()

    in_virtual_time(read())


@LINUX_ONLY
async def test_the_system_shows_what_a_client_takes() -> None:
    transports: list[asyncio.Transport] = []

    class Server(asyncio.Protocol):
        connection_made = transports.append  # type: ignore[assignment]

    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    with closing(server), socket.create_connection(server.sockets[0].getsockname()):
        await until(lambda: bool(transports))
        transports[0].write(b"x" * 1000)
        await until(lambda: acknowledged(transports[0]) == 1000)
        transports[0].close()


@pytest.mark.parametrize("hot", [True, False])
async def test_a_client_that_reads_nothing_of_a_response_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, *, hot: bool
) -> None:
    monkeypatch.setattr("services.query.http.connection.IDLE_S", 0.05)
    protocol = FastConnection if hot else AiohttpConnection
    dependencies = dependencies_of(a_state())
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    store.put("UA1", value=b'{"a":"' + b"x" * MORE_THAN_SOCKETS_BUFFER + b'"}')
    with patch.object(protocol, "connection_lost", autospec=True, side_effect=protocol.connection_lost) as lost:
        async with answering(dependencies, hot=hot) as instance:
            with socket.create_connection(("127.0.0.1", instance.port)) as client:
                client.sendall(GET)
                await until(lambda: lost.called)
