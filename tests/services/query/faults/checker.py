"""A client that remembers the newest answer for every key, from any instance, and fails when it gets an older one."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from aiohttp import ClientError, ClientSession, ClientTimeout

from tests.services.query.faults.cars import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.services.query.faults.fleet import Instance

PATIENCE = ClientTimeout(total=1.0, sock_connect=0.3)
PAUSE_S = 0.05
"""Between two reads of a key."""
SUSPECTED_S = 2.0
"""For how long one that did not answer is asked after the others, as a client does."""
READERS = 8
BATCH = 20

Order = tuple[str, int]
NOTHING: Order = ("", 0)


class Checker:
    """Reads all keys again and again at all instances in turn, one by one and in batches, in tasks of its own."""

    def __init__(self, instances: Sequence[Instance], keys: Sequence[str]) -> None:
        self.instances = list(instances)
        self._keys = keys
        self._delivered: dict[str, Order] = dict.fromkeys(keys, NOTHING)
        self._answered: dict[str, float] = {}
        self.longest: dict[str, float] = dict.fromkeys(keys, 0.0)
        """The longest time without an answer for a key, in seconds, since `mark`."""
        self.back: list[str] = []
        self._suspects: dict[str, float] = {}
        self._counts = dict.fromkeys(keys, 0)
        self.refused = 0

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
        """Begin to measure the time without an answer anew."""
        now = time.monotonic()
        self.longest = dict.fromkeys(self._keys, 0.0)
        self._answered = dict.fromkeys(self._keys, now)

    def lost(self) -> float:
        """The longest time without an answer for some key since `mark`, in seconds."""
        now = time.monotonic()
        return max(max(self.longest[key], now - self._answered.get(key, now)) for key in self._keys)

    def delivered(self) -> Mapping[str, Order]:
        """The latest that was shown of each key: its life and version."""
        return self._delivered

    def answers_of(self) -> list[int]:
        """How often each key was answered."""
        return list(self._counts.values())

    async def _read_on(self, keys: Sequence[str]) -> None:
        turn = 0
        while True:
            for key in keys:
                turn += 1
                for instance in self._order(turn):
                    if await self._read(instance, key):
                        break
                await asyncio.sleep(PAUSE_S / max(1, len(keys)))

    def _order(self, turn: int) -> list[Instance]:
        """All in turn, those last that did not answer lately."""
        now, count = time.monotonic(), len(self.instances)
        of_turn = [self.instances[(turn + at) % count] for at in range(count)]
        return sorted(of_turn, key=lambda one: now - self._suspects.get(one.name, 0.0) < SUSPECTED_S)

    async def _read(self, instance: Instance, key: str) -> bool:
        floor = self._delivered[key]
        try:
            async with self._session.get(f"{instance.url}/v1/states/{NAME}/{quote(key, safe='')}") as response:
                told = json.loads(await response.read())
        except (ClientError, OSError, TimeoutError):
            self._suspects[instance.name] = time.monotonic()
            return False
        return self.judge(instance, key, floor, told)

    async def _batch_on(self) -> None:
        at = 0
        while True:
            at += 1
            keys = [self._keys[(at * BATCH + more) % len(self._keys)] for more in range(BATCH)]
            await self._batch(self._order(at)[0], keys)
            await asyncio.sleep(PAUSE_S)

    async def _batch(self, instance: Instance, keys: Sequence[str]) -> None:
        floors = {key: self._delivered[key] for key in keys}
        try:
            async with self._session.post(f"{instance.url}/v1/states/{NAME}:batchGet", json={"keys": keys}) as response:
                told = json.loads(await response.read())
        except (ClientError, OSError, TimeoutError):
            self._suspects[instance.name] = time.monotonic()
            return
        for key, answer in zip(keys, told.get("answers", ()), strict=False):
            self.judge(instance, key, floors[key], answer)

    def judge(self, instance: Instance, key: str, floor: Order, told: Mapping[str, object]) -> bool:
        """Whether it is an answer. What was shown before this was asked for must not be taken back."""
        kind = told.get("type")
        if kind not in (None, "never_seen", "expired"):
            self.refused += 1
            return False
        order = (str(told["window_start"]), int(str(told["version"]))) if kind is None else NOTHING
        if order < floor:
            self.back.append(f"{instance.name} shows {key} at {order} ({told}) after {floor}")
        now = time.monotonic()
        self.longest[key] = max(self.longest[key], now - self._answered.get(key, now))
        self._answered[key] = now
        self._delivered[key] = max(self._delivered[key], order)
        self._counts[key] += 1
        return True
