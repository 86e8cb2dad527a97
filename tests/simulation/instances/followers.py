"""Clients that watch only changes, over single connections: they receive what is written later, and nothing former."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from aiohttp import ClientError

from services.client.answers import found, reader
from services.query.push.event import EventKind
from tests.simulation.instances.reads import order_of
from tests.simulation.instances.script import BOUND_S, Fault
from tests.simulation.instances.watchers import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.requests import Requests
    from tests.simulation.instances.script import Script
    from tests.simulation.instances.sockets import Socket

    States = Sequence[EntryOrder | None]

POLL_S = 0.1
DELAYING = ("cut", "freeze", "away", "apart", "late", "grow", "recreate", "leaderless")
"""The faults after which an instance reads a record late: it is new to it."""


def followers(script: Script, state: str, keys: Sequence[str], requests: Requests) -> Iterator[Follower]:
    """Yield clients that watch only changes, of each key and of all, at any instance."""
    random = Random(f"{script.seed} followers")
    for wanted in [{"prefix": ""}, *({"key": key} for key in keys)] if script.followed else []:
        instance = random.choice([*requests.instances])
        yield Follower(f"follower {wanted.get('key', ALL)}", state, wanted, instance, requests)


class Received(NamedTuple):
    """A version that a follower got; `order` is None of a key that is gone."""

    key: str
    at: float
    order: EntryOrder | None
    is_closed: bool


class Following:
    """One connection of a follower."""

    def __init__(self, name: str, key: str | None, asked: float) -> None:
        self.name = name
        self.key = key
        """What it watches; None for all keys."""
        self.asked = asked
        """When it was opened."""
        self.began: float | None = None
        """When all partitions were watched, each at its owner; None before."""
        self.received: list[Received] = []
        self.has_ended = False
        """Whether the connection was lost, or changes were, as the client has learned."""


class Follower:
    """Watches the changes of a key, or of all, at one instance; it connects again at once."""

    def __init__(self, name: str, state: str, wanted: Mapping[str, str], instance: str, requests: Requests) -> None:
        self._name = name
        self._key = wanted.get("key")
        self._command = {"type": "subscribe", "state": state, **wanted, "current": False}
        self._instance = instance
        self._requests = requests
        self.followings: list[Following] = []

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                async with self._requests.connect("", f"http://{self._instance}") as socket:
                    await self._follow(socket)
            except (ClientError, OSError):
                pass
            if self.followings:
                self.followings[-1].has_ended = True
            await asyncio.sleep(POLL_S)

    async def _follow(self, socket: Socket) -> None:
        """Take messages until the connection is lost, or the client learns that changes are."""
        loop = asyncio.get_running_loop()
        following = Following(f"{self._name} {self._instance} {len(self.followings)}", self._key, loop.time())
        self.followings.append(following)
        await socket.send_str(orjson.dumps({**self._command, "id": following.name}).decode())
        while not socket.is_closed:
            if following.began is None and self._has_begun(following.name):
                following.began = loop.time()
            try:
                message = orjson.loads((await socket.receive(POLL_S)).data or b'{"type":"closed"}')
            except TimeoutError:
                continue
            if message["type"] in ("reset", "error", "closed"):
                return
            _take(following, message, loop.time())

    def _has_begun(self, name: str) -> bool:
        push = self._requests.instances[self._instance].push
        streams = [] if push is None else push._streams  # noqa: SLF001  # nothing tells a client that it has begun
        found = [stream.subscriptions[name] for stream in streams if name in stream.subscriptions]
        return any(None not in one.since.values() for one in found)


def _take(following: Following, message: Mapping[str, Any], at: float) -> None:
    if message["type"] == EventKind.STATE:
        answer = message["answer"]
        value = found(answer, reader("", "", None))
        following.received.append(Received(value.key, at, order_of(value), value.is_open is False))
    elif message["type"] in tuple(EventKind):
        following.received.append(Received(message["key"], at, None, is_closed=False))


def wrong_followings(
    script: Script, followings: Sequence[Following], key: str, states: States, times: Sequence[float]
) -> Iterator[str]:
    """Yield what is wrong with what the followers have received of a key."""
    for following in followings:
        received = [one for one in following.received if one.key == key]
        yield from _former(script, following, received, states, times)
        for before, one in pairwise(received if not script.is_small else ()):  # few are remembered then
            if before.order is not None and one.order == before.order and one.is_closed == before.is_closed:
                yield f"{following.name} has received {one} twice"


def _former(
    script: Script, following: Following, received: Sequence[Received], states: States, times: Sequence[float]
) -> Iterator[str]:
    """Yield the versions that were written before the follower began, and read by then."""
    for one in received:
        if one.order is None or one.is_closed:
            continue
        written = max((time for state, time in zip(states, times, strict=True) if state == one.order), default=0.0)
        if written + script.late_s < following.asked and not _is_delayed(script, written, following.asked):
            yield f"{following.name}, opened at {following.asked:.2f}, has received {one}, written at {written:.2f}"


def _is_delayed(script: Script, begin: float, end: float) -> bool:
    """Return whether a fault may have delayed the reading of a record."""
    faults = [step for step in script.steps if isinstance(step, Fault) and step.kind in DELAYING]
    return any(fault.at < end and begin < fault.at + fault.lasts + BOUND_S for fault in faults)


def missing(following: Following, key: str, states: States, times: Sequence[float]) -> EntryOrder | None:
    """Return the last version of a key if it was written after the follower began, and has not arrived.

    A window that is the newest again, because a later one was removed, is no later record: a follower whose partition
    had no instance meanwhile does not learn of the removal.
    """
    last, at = states[-1], times[-1]
    if last is not None and any(state is not None and state[0] > last[0] for state in states):
        return None
    for state, time in zip(reversed(states), reversed(times), strict=True):
        if state != last:
            break
        at = time
    is_of_key = following.key in (key, None)
    if not is_of_key or following.began is None or following.has_ended or at <= following.began:
        return None
    return None if any(one.order == last for one in following.received if one.key == key) else last
