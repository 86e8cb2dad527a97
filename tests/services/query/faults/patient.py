"""A client that waits for an instance which does not respond, over connections that were open before."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import quote

from tests.deadline import DEADLINE_S
from tests.services.query.faults.cars import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.services.query.faults.checker import Checker, Order
    from tests.services.query.faults.fleet import Instance

CONNECTIONS = 4
END_OF_HEAD = b"\r\n\r\n"


class PendingRequest(NamedTuple):
    """A request whose response has not come. `floor`: the latest answer of the key before it."""

    key: str
    floor: Order


class PatientReader:
    """Sends pipelined requests to one instance, and has the checker judge the responses whenever they come."""

    def __init__(self, instance: Instance, keys: Sequence[str], checker: Checker) -> None:
        self._instance, self._keys, self._checker = instance, keys, checker
        self._sent: list[list[PendingRequest]] = []

    async def __aenter__(self) -> Self:
        port = self._instance.port
        self._connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            connection[1].close()

    def send(self) -> None:
        """Send a request for each key."""
        delivered = self._checker.delivered()
        for at, (_, writer) in enumerate(self._connections):
            keys = self._keys[at::CONNECTIONS]
            self._sent.append([PendingRequest(key, delivered[key]) for key in keys])
            targets = (f"/v1/states/{NAME}/{quote(key, safe='')}" for key in keys)
            writer.write("".join(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n" for target in targets).encode())

    async def receive(self) -> list[str]:
        """Wait for the responses, in the order of the requests; return the instances of the answers."""
        answered_by = []
        for (reader, _), sent in zip(self._connections, self._sent, strict=True):
            for key, floor in sent:
                head = (await reader.readuntil(END_OF_HEAD)).decode().lower()
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                body = json.loads(await reader.readexactly(int(length)))
                if self._checker.check(self._instance, key, floor, body):
                    answered_by.append(str(body["instance"]))
        self._sent = []
        return answered_by

    async def all_answers_by(self) -> set[str]:
        """Read until there is an answer for each key, and return the instances that gave these."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                self.send()
                if len(answered_by := await self.receive()) == len(self._keys):
                    return {*answered_by}
