"""Watches keys by a thousand connections while they change, and counts the values that the connections receive."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from typing_extensions import override

from bench.harness.errors import RunFailedError
from bench.harness.figures import Figures
from bench.harness.load import keyed
from bench.query.probes import PATIENCE_S, WATCHED
from bench.query.records import FIRST, STATE, TOPIC, checked, key, value

WATCHERS = 1_000
"""Connections, the same number for each watched key."""
BETWEEN_S = 0.1
"""Between two versions of each watched key."""
PAUSE_S = 0.01
REQUEST = "GET /v1/states/{state}/{key}/watch HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"


class NotPushedError(RunFailedError):
    """Not all watchers received a version within PATIENCE_S."""

    def __init__(self, version: int, missing: int) -> None:
        super().__init__(f"{missing} of {WATCHERS} watchers did not receive version {version} within {PATIENCE_S:g} s")


class Pushed(NamedTuple):
    """The figures, and the versions that the watched keys have now."""

    figures: Figures
    versions: dict[int, int]


NOTHING_PUSHED = Pushed({}, {})


class Watcher(asyncio.Protocol):
    """A stream of server-sent events of one key."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._rest = b""
        self.version = 0
        self.received = 0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101  # of a socket
        transport.write(REQUEST.format(state=STATE, key=key(self._number)).encode())

    @override
    def data_received(self, data: bytes) -> None:
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            version = checked(self._number, event)
            if version is not None and version > self.version:
                self.version = version
                self.received += 1


async def push(boot: str, port: int, began: str, seconds: float, cpu_s: Callable[[], float]) -> Pushed:
    """Update the watched keys for so long. Raises NotPushedError; a version that comes again is not counted."""
    loop, watchers, transports = asyncio.get_running_loop(), list[Watcher](), list[asyncio.Transport]()
    try:
        for index in range(WATCHERS):
            watchers.append(Watcher(WATCHED[index % len(WATCHED)]))
            transport, _ = await loop.create_connection(lambda: watchers[-1], "127.0.0.1", port)
            transports.append(transport)
        await _received(watchers, FIRST)
        received, used = sum(watcher.received for watcher in watchers), cpu_s()
        version, made, end = FIRST, keyed(boot, linger_ms=0), loop.time() + seconds
        while loop.time() < end:
            version += 1
            for number in WATCHED:
                made.produce(TOPIC, value(number, version, began), key(number))
            made.poll(0)
            await asyncio.sleep(BETWEEN_S)
        made.flush()
        await _received(watchers, version)
        received, used = sum(watcher.received for watcher in watchers) - received, cpu_s() - used
    finally:
        for transport in transports:
            transport.close()
    return Pushed({"pushed_per_cpu_s": received / used}, dict.fromkeys(WATCHED, version))


async def _received(watchers: list[Watcher], version: int) -> None:
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while missing := sum(watcher.version < version for watcher in watchers):
        if asyncio.get_running_loop().time() > end:
            raise NotPushedError(version, missing)
        await asyncio.sleep(PAUSE_S)
