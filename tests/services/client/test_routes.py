"""Several instances: requests go to the owner, and to others when it is down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contracts.wire.partition import partition
from services.client import Client, Found, NoAnswerError
from services.client.instances import Directory, candidates, directory
from tests.services.client.fake_service import (
    PARTITIONS,
    Fake,
    cluster,
    entry,
    forwarding_to,
    hanging,
    older_version,
    problem_response,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = [f"k{number}" for number in range(40)]


def owner(fakes: Sequence[Fake], key: str) -> Fake:
    return fakes[partition(key.encode(), PARTITIONS) % len(fakes)]


def fill(fakes: Sequence[Fake]) -> None:
    for fake in fakes:
        fake.put(*(entry(key, 1) for key in KEYS))


async def discover_owners(states: Client, fakes: Sequence[Fake]) -> None:
    """Send a request, so that the client discovers the instances, and wait until it knows the owners."""
    await states.get("flights", KEYS[0])
    await until(lambda: states._discovery.owner("flights", KEYS[0]) is not None, "discovered")  # noqa: SLF001
    for fake in fakes:
        fake.requests.clear()


async def test_each_key_is_read_from_its_owner(fakes: list[Fake]) -> None:
    fill(fakes)
    async with Client(fakes[0].url) as states:
        await discover_owners(states, fakes)
        for key in KEYS:
            found = await states.get("flights", key)
            assert isinstance(found, Found)
            assert found.instance == owner(fakes, key).name
    assert sum(len(fake.requests) for fake in fakes) == len(KEYS)
    assert sum(fake.discoveries for fake in fakes) == 1


async def test_without_discovery_only_the_given_address_is_used(fakes: list[Fake]) -> None:
    fill(fakes)
    async with Client(fakes[1].url, discover=False) as states:
        for key in KEYS:
            await states.get("flights", key)
    assert [len(fake.requests) for fake in fakes] == [0, len(KEYS), 0]
    assert [fake.discoveries for fake in fakes] == [0, 0, 0]


async def test_another_instance_is_used_when_the_owner_is_down(fakes: list[Fake]) -> None:
    fill(fakes)
    async with Client([fake.url for fake in fakes]) as states:
        await discover_owners(states, fakes)
        await fakes[0].stop()
        cluster(*fakes[1:])
        for key in KEYS:
            assert isinstance(await states.get("flights", key, deadline=1.0), Found)
        await until(lambda: states._discovery.owner("flights", "k0") in {f.url for f in fakes[1:]}, "discovered")  # noqa: SLF001


async def test_another_instance_is_used_when_the_owner_is_silent(
    fakes: list[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.client.request_sender.ATTEMPT_S", 0.2)
    fill(fakes)
    key = KEYS[1]
    async with Client(fakes[0].url) as states:
        await discover_owners(states, fakes)
        owner(fakes, key).always = hanging
        found = await states.get("flights", key, deadline=2.0)
        assert isinstance(found, Found)
        assert found.instance != owner(fakes, key).name
        await states.get("flights", key, deadline=2.0)
    assert len(owner(fakes, key).requests) == 1  # the silent instance comes last for a while


async def test_a_key_that_moved_is_read_from_its_new_owner(fakes: list[Fake]) -> None:
    fill(fakes)
    key = KEYS[2]
    before = owner(fakes, key)
    after = next(fake for fake in fakes if fake is not before)
    async with Client(fakes[0].url) as states:
        await discover_owners(states, fakes)
        states._discovery._looked = float("-inf")  # noqa: SLF001  # it looked just now, and would wait for a second
        before.always = problem_response("elsewhere", 421)
        cluster(*fakes, owners=[after] * PARTITIONS)
        assert isinstance(await states.get("flights", key), Found)
        await until(lambda: states._discovery.owner("flights", key) == after.url, "discovered")  # noqa: SLF001
        before.requests.clear()
        await states.get("flights", key)
    assert before.requests == []


@pytest.mark.parametrize("batch", [False, True])
async def test_a_forwarded_response_makes_the_client_discover_the_new_owner(fakes: list[Fake], *, batch: bool) -> None:
    fill(fakes)
    key = KEYS[4]
    before = owner(fakes, key)
    after = next(fake for fake in fakes if fake is not before)
    async with Client(fakes[0].url) as states:
        await discover_owners(states, fakes)
        states._discovery._looked = float("-inf")  # noqa: SLF001  # it looked just now, and would wait for a second
        before.always = forwarding_to(after)
        cluster(*fakes, owners=[after] * PARTITIONS)
        (found,) = await states.get_many("flights", [key]) if batch else [await states.get("flights", key)]
        assert isinstance(found, Found)
        assert found.instance == after.name
        await until(lambda: states._discovery.owner("flights", key) == after.url, "discovered")  # noqa: SLF001


async def test_an_earlier_version_of_an_instance_that_is_behind_is_not_returned(fakes: list[Fake]) -> None:
    fill(fakes)
    key = KEYS[3]
    async with Client(fakes[0].url) as states:
        for fake in fakes:
            fake.put(entry(key, 9))
        await discover_owners(states, fakes)
        await states.get("flights", key)
        owner(fakes, key).always = older_version(8)
        found = await states.get("flights", key)
        assert isinstance(found, Found)
        assert found.version == 9


async def test_a_client_recovers_when_the_service_does(fake: Fake) -> None:
    fake.put(entry("k", 1))
    fake.always = problem_response("failed", 500)
    async with Client(fake.url) as states:
        with pytest.raises(NoAnswerError):
            await states.get("flights", "k", deadline=0.1)
        fake.always = None
        assert isinstance(await states.get("flights", "k"), Found)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"instances": None},
        {"instances": [{"url": 5, "owns": {}}], "partitions": {}},
        {"instances": [{"url": "ftp://x", "owns": {}}], "partitions": {}},
        {"instances": [], "partitions": {"flights": "many"}},
    ],
)
async def test_an_invalid_directory_is_ignored(fake: Fake, body: dict[str, object] | None) -> None:
    fake.put(entry("k", 1))
    fake.instances = body
    async with Client(fake.url) as states:
        await states.get("flights", "k")
        await until(lambda: fake.discoveries == 1, "discovered")
        assert isinstance(await states.get("flights", "k"), Found)


def test_suspects_come_last_and_the_owner_first() -> None:
    owners = {("s", number): "http://b" for number in range(4)}
    known = Directory(("http://a", "http://b", "http://c"), {"s": 4}, owners)
    assert candidates(known, ["http://seed"], (), ("s", "k")) == ["http://b", "http://a", "http://c", "http://seed"]
    assert candidates(known, ["http://c"], ("http://b",), ("s", "k")) == ["http://a", "http://c", "http://b"]
    assert candidates(known, ["http://c"], (), ("other", "k")) == ["http://c", "http://a", "http://b"]
    assert candidates(known, ["http://c"], (), None) == ["http://c", "http://a", "http://b"]


async def test_an_instance_of_another_scheme_is_not_used(fakes: list[Fake]) -> None:
    fill(fakes)
    cluster(*fakes)
    assert fakes[0].instances is not None
    for one in fakes[0].instances["instances"]:
        one["url"] = one["url"].replace("http://", "https://")
    async with Client(fakes[0].url) as states:
        await states.get("flights", KEYS[0])
        await until(lambda: bool(states._discovery._directory.partitions), "discovered")  # noqa: SLF001
        assert states._discovery.candidates(("flights", KEYS[0])) == [fakes[0].url]  # noqa: SLF001


def test_a_token_for_https_is_not_sent_over_http() -> None:
    body = {
        "instances": [{"instance": url, "url": url, "owns": {"s": [0]}} for url in ("https://a/", "http://b")],
        "partitions": {"s": 1},
    }
    known = directory(body).of_scheme("https")
    assert known.members == ("https://a",)
    assert set(known.owners.values()) <= {"https://a"}
