"""A fake API that costs so little CPU that the benchmark measures the worker.

It answers `GET /places/<number>` by its behaviour, over persistent connections, and `GET /ledger`.
"""

import asyncio
import time
from collections import deque
from http import HTTPStatus
from multiprocessing.synchronize import Event as Flag

import orjson
import uvloop

from bench.enrichment.behaviour import Behaviour, place
from bench.enrichment.connection import ClientConnection
from bench.enrichment.ledger import PATH, CallLedger
from bench.enrichment.quota import Quota

TICK_S = 0.001
LOOK_S = 0.05
BACKLOG = 4096
REFUSED = HTTPStatus.TOO_MANY_REQUESTS


def serve(port: int, behaviour: Behaviour, stop: Flag) -> None:
    """Answer at this port until the flag is set."""
    uvloop.run(BenchmarkApi(port, behaviour).run(stop))


def answer(status: HTTPStatus, body: bytes) -> bytes:
    """A whole HTTP/1.1 response."""
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Length: {len(body)}",
        "Content-Type: application/json",
    ]
    again = ["Retry-After: 1"] if status is REFUSED else []
    return "\r\n".join((*lines, *again, "", "")).encode() + body


class BenchmarkApi:
    """One API, with its ledger."""

    def __init__(self, port: int, behaviour: Behaviour) -> None:
        self._port, self._behaviour = port, behaviour
        self._ledger = CallLedger()
        self._locations: set[int] = set()
        self._connections: set[asyncio.Transport] = set()
        self._waiting: dict[float, deque[tuple[float, asyncio.Transport, bytes]]] = {}
        self._quota = Quota(behaviour.quota) if behaviour.quota else None

    async def run(self, stop: Flag) -> None:
        """Answer until the flag is set."""
        ticking = asyncio.create_task(self._tick())
        server = await self._open()
        while not stop.is_set():
            await asyncio.sleep(LOOK_S)
            if self._is_to_go_down():
                server.close()
                await self._be_down()
                server = await self._open()
                self._ledger.up = time.time()
        ticking.cancel()
        server.close()

    def on_request(self, transport: asyncio.Transport, path: bytes) -> None:
        """Answer a call when it is due."""
        if path == PATH.encode():
            self._ledger.locations = len(self._locations)
            transport.write(answer(HTTPStatus.OK, self._ledger.encode()))
            return
        now = time.time()
        self._ledger.first = self._ledger.first or now
        if self._quota and not self._quota.take(now):
            self._ledger.refused += 1
            transport.write(answer(REFUSED, b"{}"))
            return
        self._ledger.calls += 1
        self._ledger.last = now
        number = int(path.rpartition(b"/")[2])
        self._locations.add(number)
        delay = self._behaviour.delay(number)
        response = answer(HTTPStatus.OK, orjson.dumps(place(number)))
        self._waiting.setdefault(delay, deque()).append((now + delay, transport, response))

    def on_connect(self, transport: asyncio.Transport) -> None:
        """Note a connection."""
        self._connections.add(transport)

    def on_disconnect(self, transport: asyncio.Transport) -> None:
        """Forget one."""
        self._connections.discard(transport)

    async def _tick(self) -> None:
        """Requests with the same delay are due in the order of arrival, so one timer serves all."""
        while True:
            await asyncio.sleep(TICK_S)
            now = time.time()
            for queue in self._waiting.values():
                while queue and queue[0][0] <= now:
                    _, transport, response = queue.popleft()
                    if not transport.is_closing():
                        transport.write(response)

    async def _open(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: ClientConnection(self), "127.0.0.1", self._port, backlog=BACKLOG)

    def _is_to_go_down(self) -> bool:
        after, ledger = self._behaviour.down_after_s, self._ledger
        return after is not None and not ledger.down and bool(ledger.first) and time.time() - ledger.first > after

    async def _be_down(self) -> None:
        self._ledger.down = time.time()
        for transport in list(self._connections):
            transport.abort()
        self._waiting.clear()
        await asyncio.sleep(self._behaviour.down_s)
