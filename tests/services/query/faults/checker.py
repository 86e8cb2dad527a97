"""A client that remembers the newest answer for each key, from any instance, and records older ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Protocol, Self
from urllib.parse import quote

from aiohttp import ClientError, ClientSession, ClientTimeout

from tests.services.query.faults.cars import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    class Instance(Protocol):
        """An instance of the service. Its URL may change when another one takes its place."""

        name: str
        url: str


PATIENCE = ClientTimeout(total=1.0, sock_connect=0.3)
PAUSE_S = 0.05
"""Between two reads of a key."""
SUSPECTED_S = 2.0
"""How long an instance that did not respond comes last, as in the client."""
READERS = 8
BATCH = 20

Order = tuple[str, int, int]
"""Window start, epoch and version."""
NOTHING: Order = ("", 0, 0)


class Checker:
    """Reads all keys repeatedly at all instances in turn, one by one and in batches, in background tasks."""

    def __init__(
        self, instances: Sequence[Instance], keys: Sequence[str], state: str = NAME, pause_s: float = PAUSE_S
    ) -> None:
        self.instances = list(instances)
        self._keys, self._state, self._pause_s = keys, state, pause_s
        self._delivered: dict[str, Order] = dict.fromkeys(keys, NOTHING)
        self._answered: dict[str, float] = {}
        self.longest: dict[str, float] = dict.fromkeys(keys, 0.0)
        """The longest time without an answer for a key, in seconds, since `mark`."""
        self.regressions: list[str] = []
        self._suspects: dict[str, float] = {}
        self._counts = dict.fromkeys(keys, 0)
        self.problems: Counter[tuple[str, str]] = Counter()
        """How many answers were problems, by instance and type."""

    async def __aenter__(self) -> Self:
        self._session = ClientSession(timeout=PATIENCE)
        of_keys = [self._keys[at::READERS] for at in range(READERS)]
        self._tasks = [asyncio.create_task(self._read_on(keys)) for keys in of_keys]
        self._tasks.append(asyncio.create_task(self._batch_on()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._session.close()

    def mark(self) -> None:
        """Restart the measurement of the time without an answer."""
        now = time.monotonic()
        self.longest = dict.fromkeys(self._keys, 0.0)
        self._answered = dict.fromkeys(self._keys, now)

    def longest_outage(self) -> float:
        """Return the longest time without an answer for a key since `mark`, in seconds."""
        now = time.monotonic()
        return max(max(self.longest[key], now - self._answered.get(key, now)) for key in self._keys)

    def delivered(self) -> Mapping[str, Order]:
        """Return the latest answer of each key."""
        return self._delivered

    def answers_of(self) -> list[int]:
        """Return the number of answers of each key."""
        return list(self._counts.values())

    async def _read_on(self, keys: Sequence[str]) -> None:
        turn = 0
        while True:
            for key in keys:
                turn += 1
                for instance in self._order(turn):
                    if await self._read(instance, key):
                        break
                await asyncio.sleep(self._pause_s / max(1, len(keys)))

    def _order(self, turn: int) -> list[Instance]:
        """Return all instances in turn; those that did not respond lately come last."""
        now, count = time.monotonic(), len(self.instances)
        of_turn = [self.instances[(turn + at) % count] for at in range(count)]
        return sorted(of_turn, key=lambda one: now - self._suspects.get(one.name, 0.0) < SUSPECTED_S)

    async def _read(self, instance: Instance, key: str) -> bool:
        floor = self._delivered[key]
        try:
            async with self._session.get(f"{instance.url}/v1/states/{self._state}/{quote(key, safe='')}") as response:
                body = json.loads(await response.read())
        except (ClientError, OSError, TimeoutError):
            self._suspects[instance.name] = time.monotonic()
            return False
        return self.check(instance, key, floor, body)

    async def _batch_on(self) -> None:
        at = 0
        while True:
            at += 1
            keys = [self._keys[(at * BATCH + more) % len(self._keys)] for more in range(BATCH)]
            await self._batch(self._order(at)[0], keys)
            await asyncio.sleep(self._pause_s)

    async def _batch(self, instance: Instance, keys: Sequence[str]) -> None:
        floors = {key: self._delivered[key] for key in keys}
        try:
            async with self._session.post(
                f"{instance.url}/v1/states/{self._state}:batchGet", json={"keys": keys}
            ) as response:
                body = json.loads(await response.read())
        except (ClientError, OSError, TimeoutError):
            self._suspects[instance.name] = time.monotonic()
            return
        for key, answer in zip(keys, body.get("answers", ()), strict=False):
            self.check(instance, key, floors[key], answer)

    def check(self, instance: Instance, key: str, floor: Order, body: Mapping[str, object]) -> bool:
        """Return whether the body is an answer. It must not be older than `floor`, the latest before the request."""
        kind = body.get("type")
        if kind not in (None, "never_seen", "expired"):
            self.problems[instance.name, str(kind)] += 1
            return False
        order = NOTHING
        if kind is None:
            order = str(body["window_start"]), int(str(body["epoch"])), int(str(body["version"]))
        if order < floor:
            self.regressions.append(f"{instance.name} shows {key} at {order} ({body}) after {floor}")
        now = time.monotonic()
        self.longest[key] = max(self.longest[key], now - self._answered.get(key, now))
        self._answered[key] = now
        self._delivered[key] = max(self._delivered[key], order)
        self._counts[key] += 1
        return True
