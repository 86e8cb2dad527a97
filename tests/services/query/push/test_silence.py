"""Watches of silent keys: a client knows at any time which keys have been silent for longer than it chose."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession

from contracts.model.named_state import QueryOptions
from contracts.wire.partition import partition
from services.query.cluster import Member, PartitionStatus, Role
from services.query.store import Entry, Store, Update
from tests.services.query.in_memory import NOW, MemoryRouting, a_state, dependencies_of
from tests.services.query.push.serving import Client, Instance, connected, eventually, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

STATE = replace(a_state(query=QueryOptions(silence=True)), lifetime=None)
KEYS = [f"patient-{number}" for number in range(12)]


class Ward:
    """A service with a clock that a test sets."""

    def __init__(self, store: Store, routing: MemoryRouting, name: str = "one") -> None:
        self.now = NOW
        self.last: dict[str, int] = {}
        self.versions: dict[str, int] = {}
        self.store = store
        made = dependencies_of(STATE, stores={STATE.name: store}, routing=routing, instance=name)
        self.instance = Instance(STATE, dependencies=replace(made, now=lambda: self.now))

    def record(self, key: str, ago_s: float = 0) -> None:
        """Store a record of the key that is so many seconds old, and fan it out."""
        self.versions[key] = version = self.versions.get(key, 0) + 1
        self.last[key] = time = self.now - round(ago_s * 1000)
        number = partition(key.encode(), STATE.partitions)
        offset = self.store.position(number) or 0
        entry = Entry(NOW, 0, version, time, number, offset, b'{"v":%d}' % version)
        self.instance.watching.changed(self.store.apply([Update(key, number, offset, entry)], {number: offset + 1}))

    def wait(self, seconds: float) -> None:
        """Move the clock forward."""
        self.now += round(seconds * 1000)
        self.instance.watching.refresh()

    def silent(self, span_s: int) -> set[str]:
        """Return the silent keys, by a plain comparison."""
        return {key for key, time in self.last.items() if time // 1000 < self.now // 1000 - span_s}


@asynccontextmanager
async def ward(folder: Path, routing: MemoryRouting | None = None, name: str = "one") -> AsyncIterator[Ward]:
    store = Store(folder / name, STATE, "boot")
    try:
        found = Ward(store, routing or MemoryRouting(), name)
        async with found.instance.serving():
            yield found
    finally:
        store.close()


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Ward]:
    async with ward(tmp_path) as found:
        yield found


async def follow(client: Client, known: set[str], until: str) -> None:
    """Apply messages to the known silent keys up to one about this key."""
    while True:
        message = await client.next()
        key = message["answer"]["key"] if message["type"] == "state" else message["key"]
        assert message["type"] in ("state", "left")
        assert (message["type"] == "left") == (key in known), "a key leaves after it was silent, and only then"
        (known.add if message["type"] == "state" else known.discard)(key)
        if key == until:
            return


async def test_a_silent_key_is_delivered_and_leaves_when_it_is_back(watched: Ward) -> None:
    watched.record("a", ago_s=40)
    watched.record("b")
    async with connected(watched.instance) as client:
        await client.subscribe("x", prefix="", silent_for="30s")
        first = await client.next()
        assert (first["answer"]["key"], first["answer"]["age_ms"]) == ("a", 40_000)
        assert (await client.next())["type"] == "current"
        watched.wait(30)
        watched.record("c")
        watched.wait(1)
        second = await client.next()
        assert (second["type"], second["answer"]["key"], second["answer"]["version"]) == ("state", "b", 1)
        watched.record("b")
        assert await client.next() == {"type": "left", "ids": ["x"], "state": "flights", "key": "b"}
        watched.record("b")  # not silent: nothing is sent
        watched.wait(31)
        again = [await client.next() for _ in range(2)]
        assert {one["answer"]["key"]: one["answer"]["version"] for one in again} == {"b": 3, "c": 1}


async def test_an_old_record_does_not_end_silence(watched: Ward) -> None:
    watched.record("a", ago_s=100)
    async with connected(watched.instance) as client:
        await client.subscribe("x", prefix="", silent_for="30s", current=False)
        watched.record("a", ago_s=50)
        assert (await client.next())["answer"]["version"] == 2
        watched.record("new", ago_s=50)
        assert (await client.next())["answer"]["key"] == "new"
        watched.record("a", ago_s=10)
        assert (await client.next())["type"] == "left"


async def test_one_key_is_watched_by_server_sent_events(watched: Ward) -> None:
    watched.record("a")
    async with watching(watched.instance, "/v1/states/flights/a/watch?silent_for=30s") as events:
        assert (await events.next()).event == "left"
        watched.record("a")
        watched.wait(32)
        silent = await events.next()
        assert (silent.event, silent.data["version"], silent.data["age_ms"]) == ("state", 2, 32_000)
        watched.record("a")
        assert (await events.next()).event == "left"
    watched.wait(40)
    path, tag = "/v1/states/flights/a/watch?silent_for=30s&current=false", f"{NOW}.0.3"
    async with watching(watched.instance, path) as events:
        watched.record("a")
        watched.wait(31)
        assert (await events.next()).data["version"] == 4
    watched.record("a")
    async with watching(watched.instance, path, **{"Last-Event-ID": tag}) as events:
        assert (await events.next()).event == "left", "it was back meanwhile"


async def test_a_client_knows_the_silent_keys_after_any_sequence(watched: Ward) -> None:
    """Several spans on one connection, against a plain comparison."""
    drawn = random.Random(20)
    spans = {"3s": 3, "10s": 10}
    known: dict[str, set[str]] = {name: set() for name in spans}
    async with connected(watched.instance) as client:
        for key in KEYS[:6]:
            watched.record(key, ago_s=drawn.randrange(20))
        for name, span in spans.items():
            await client.subscribe(name, prefix="", silent_for=name)
            while (message := await client.next())["type"] != "current":
                known[name].add(message["answer"]["key"])
            assert known[name] == watched.silent(span)
        for _ in range(120):
            if drawn.random() < 0.5:
                watched.record(drawn.choice(KEYS), ago_s=drawn.choice((0, 0, 0, 1, 5, 15)))
            else:
                watched.wait(drawn.choice((0.3, 1, 1, 2, 5)))
            await client.send(type="unsubscribe", id="none")
            await _apply(client, known)
            assert known == {name: watched.silent(span) for name, span in spans.items()}


async def _apply(client: Client, known: dict[str, set[str]]) -> None:
    """Apply all queued messages: the response to a command may come before the last of them."""
    while True:
        message = await client.next()
        if message["type"] == "unsubscribed":
            await client.send(type="subscribe", id="mark", state="flights", key="none")
        elif message["type"] == "never_seen":
            await client.send(type="unsubscribe", id="mark")
        elif message["type"] in ("state", "left"):
            key = message["answer"]["key"] if message["type"] == "state" else message["key"]
            for name in message["ids"]:
                (known[name].add if message["type"] == "state" else known[name].discard)(key)
        if message == {"type": "unsubscribed", "id": "mark"}:
            return


async def test_many_keys_become_silent_at_once(watched: Ward) -> None:
    keys = {f"sensor-{number}" for number in range(700)}
    for key in keys:
        watched.record(key)
    async with connected(watched.instance) as client:
        await client.subscribe("x", prefix="sensor-", silent_for="5s")
        assert (await client.next())["type"] == "current"
        watched.wait(7)
        assert {(await client.next())["answer"]["key"] for _ in keys} == keys


async def test_a_client_receives_the_silent_keys_of_all_instances(tmp_path: Path) -> None:
    one, two = MemoryRouting(), MemoryRouting()
    one.others = {number: PartitionStatus(Role.ELSEWHERE, 0) for number in (1, 3)}
    two.others = {number: PartitionStatus(Role.ELSEWHERE, 0) for number in (0, 2)}
    async with ward(tmp_path, one, "one") as first, ward(tmp_path, two, "two") as second:
        wards = first, second
        for routing, other in ((one, second), (two, first)):
            routing.known = [Member(other.instance.dependencies.settings.instance, other.instance.base)]
        for each in wards:
            each.wait(0)

        def owner(key: str) -> Ward:
            return wards[partition(key.encode(), STATE.partitions) % 2]

        async with connected(first.instance) as client:
            await client.subscribe("x", prefix="", silent_for="30s", current=False)
            await eventually(lambda: second.instance.subscriptions() == 1)
            for key in KEYS:
                owner(key).record(key)
            for each in wards:
                each.wait(32)
            assert {(await client.next())["answer"]["key"] for _ in KEYS} == set(KEYS)
            for key in KEYS:
                owner(key).record(key)
            assert {(await client.next())["key"] for _ in KEYS} == set(KEYS)


async def test_invalid_subscriptions_are_rejected(watched: Ward) -> None:
    async with connected(watched.instance) as client:
        for options in ({"silent_for": "soon"}, {"silent_for": "30s", "window": "all"}):
            refused: dict[str, Any] = await client.subscribe("x", prefix="", **options)
            assert refused["problem"]["type"] == "bad_request"
    async with ClientSession(watched.instance.base) as session:
        for query in ("silent_for=soon", "silent_for=30s&window=all"):
            async with session.get(f"/v1/states/flights/a/watch?{query}") as response:
                assert response.status == 400
    async with Instance().serving() as other, connected(other) as client:
        assert (await client.subscribe("x", prefix="", silent_for="30s"))["type"] == "error"


async def test_a_span_of_zero_is_valid(watched: Ward) -> None:
    watched.record("a")
    async with connected(watched.instance) as client:
        await client.subscribe("x", prefix="", silent_for="0")
        assert (await client.next())["type"] == "current"
        watched.wait(1)
        assert (await client.next())["answer"]["key"] == "a"
        watched.record("a")
        assert (await client.next())["type"] == "left"
