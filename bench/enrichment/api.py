"""A fake API that costs so little CPU that the benchmark measures the worker.

It answers `GET /places/<number>` after its latency, over persistent connections, and `GET /ledger`.
"""

import asyncio
import http.client
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.synchronize import Event as Flag
from typing import Any, NamedTuple, cast

import orjson
import uvloop
from typing_extensions import override

from bench.harness.errors import HelperExitedError

LEDGER = "/ledger"
TICK_S = 0.001
LOOK_S = 0.05
READY_S = 15.0
BACKLOG = 4096
END = b"\r\n\r\n"
DISTRICTS = 97
LIMITS = 50


@dataclass(frozen=True)
class Behaviour:
    """An API's latency. Times are in seconds."""

    latency_s: float = 0.05
    slow_one_in: int | None = None
    """One call in this number takes `slow_s`; the requested value decides which calls."""
    slow_s: float = 5.0

    def __str__(self) -> str:
        slow = f", 1 in {self.slow_one_in} takes {self.slow_s:g} s" if self.slow_one_in else ""
        return f"{1000 * self.latency_s:.0f} ms{slow}"

    def delay(self, number: int) -> float:
        """How long the answer about this place takes."""
        return self.slow_s if self.slow_one_in and number % self.slow_one_in == 0 else self.latency_s


class CallCounts(NamedTuple):
    """The calls that the API counted, and how many of them asked for a place that was requested before."""

    calls: int
    repeated: int


def place(number: int) -> dict[str, Any]:
    """Return the API's answer about the place of this number."""
    return {
        "number": number,
        "name": f"Place {number}",
        "district": f"District {number % DISTRICTS}",
        "limit_kmh": 30.5 + number % LIMITS,
    }


def serve(port: int, behaviour: Behaviour, stop: Flag) -> None:
    """Answer at this port until the flag is set."""
    uvloop.run(BenchmarkApi(behaviour).run(port, stop))


def fetch_ledger(port: int) -> CallCounts:
    """Return the ledger of the API at this port. Raises OSError while it does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)
    try:
        connection.request("GET", LEDGER)
        return CallCounts(*orjson.loads(connection.getresponse().read()))
    finally:
        connection.close()


def await_api(port: int) -> None:
    """Return when the API answers. Raises HelperExitedError when it does not."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            fetch_ledger(port)
            return
        time.sleep(LOOK_S)
    raise HelperExitedError(serve.__name__)


class BenchmarkApi:
    """One API, with its ledger."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._calls, self._places = 0, set[int]()
        self._waiting: dict[float, deque[tuple[float, asyncio.Transport, bytes]]] = {}

    async def run(self, port: int, stop: Flag) -> None:
        """Answer until the flag is set."""
        loop, ticking = asyncio.get_running_loop(), asyncio.create_task(self._tick())
        server = await loop.create_server(lambda: ClientConnection(self), "127.0.0.1", port, backlog=BACKLOG)
        await asyncio.to_thread(stop.wait)
        ticking.cancel()
        server.close()

    def on_request(self, transport: asyncio.Transport, path: str) -> None:
        """Answer a call when it is due."""
        if path == LEDGER:
            transport.write(_response([self._calls, self._calls - len(self._places)]))
            return
        number = int(path.rpartition("/")[2])
        self._calls += 1
        self._places.add(number)
        delay = self._behaviour.delay(number)
        self._waiting.setdefault(delay, deque()).append((time.time() + delay, transport, _response(place(number))))

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


class ClientConnection(asyncio.Protocol):
    """One connection of a client: it parses HTTP/1.1 requests without bodies, and nothing else."""

    def __init__(self, api: BenchmarkApi) -> None:
        self._api = api
        self._rest = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (end := self._rest.find(END)) >= 0:
            request, self._rest = self._rest[:end], self._rest[end + len(END) :]
            self._api.on_request(self._transport, request.split(b" ", 2)[1].decode())


def _response(body: object) -> bytes:
    """A whole HTTP/1.1 response."""
    value = orjson.dumps(body)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(value)}\r\nContent-Type: application/json\r\n\r\n"
    return head.encode() + value
