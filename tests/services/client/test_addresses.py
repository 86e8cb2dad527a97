"""Several addresses: requests take turns at the given ones, and at the instances that these list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from services.client import Client, Found, NoAnswerError
from services.client.addresses import FIRST_SUSPICION_S, MAX_SUSPICION_S, PAUSE_S, REFRESH_S, Addresses
from services.client.errors import UnreachableError
from services.client.transport import ClientTransport, InstanceResponse
from tests.clock import Clock
from tests.services.client.fake_service import (
    Fake,
    entry,
    hanging,
    older_version,
    problem_response,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = [f"k{number}" for number in range(10)]


def fill(fakes: Sequence[Fake]) -> None:
    for fake in fakes:
        fake.put(*(entry(key, 1) for key in KEYS))


def answering(states: Client) -> set[str]:
    return states._addresses._answering  # noqa: SLF001


async def discover(states: Client, count: int) -> None:
    """Wait until the client knows this number of addresses."""
    await until(lambda: len(states._addresses.by_preference()) == count, "discovered")  # noqa: SLF001


async def test_reads_take_turns_at_all_instances_once_these_have_answered(fakes: list[Fake]) -> None:
    fill(fakes)
    async with Client(fakes[1].url) as states:
        await states.get("flights", KEYS[0])
        await until(lambda: all(fake.discoveries for fake in fakes), "each was asked")
        await until(lambda: len(answering(states)) == len(fakes), "each is known to answer")
        for fake in fakes:
            fake.requests.clear()
        for _ in range(3):
            for key in KEYS:
                assert isinstance(await states.get("flights", key), Found)
    assert [len(fake.requests) for fake in fakes] == [len(KEYS)] * 3
    assert [fake.discoveries for fake in fakes] == [1] * 3


async def test_a_listed_address_that_does_not_answer_gets_no_read(fakes: list[Fake]) -> None:
    fill(fakes)
    await fakes[2].stop()
    async with Client(fakes[0].url) as states:
        await states.get("flights", KEYS[0])
        await until(lambda: len(answering(states)) == 2, "two of three are known to answer")
        tried = {states._addresses.by_preference()[0] for _ in range(9)}  # noqa: SLF001
        assert tried == {fakes[0].url, fakes[1].url}


async def test_clients_with_one_list_of_addresses_begin_at_different_ones() -> None:
    urls, firsts = [f"http://{number}" for number in range(3)], set[str]()

    def draw(low: float, high: float) -> float:
        return low + (high - low) * len(firsts) / len(urls)

    for _ in urls:
        firsts.add(Addresses(urls, Listing(), Clock(), discover=False, draw=draw).by_preference()[0])
    assert firsts == {*urls}


async def test_without_discovery_only_the_given_address_is_used(fakes: list[Fake]) -> None:
    fill(fakes)
    async with Client(fakes[1].url, discover=False) as states:
        await states.get("flights", KEYS[0])
        await fakes[1].stop()
        with pytest.raises(NoAnswerError):
            await states.get("flights", KEYS[0], deadline=0.3)
    assert [len(fake.requests) for fake in fakes] == [0, 1, 0]
    assert [fake.discoveries for fake in fakes] == [0, 0, 0]


async def test_a_listed_instance_is_used_when_the_given_one_is_down(fakes: list[Fake]) -> None:
    fill(fakes)
    async with Client(fakes[0].url) as states:
        await discover(states, 3)
        await fakes[0].stop()
        for key in KEYS:
            assert isinstance(await states.get("flights", key, deadline=1.0), Found)


async def test_another_given_address_is_used_when_the_first_one_is_down(fakes: list[Fake]) -> None:
    fill(fakes)
    await fakes[0].stop()
    async with Client([fake.url for fake in fakes[:2]], discover=False) as states:
        assert isinstance(await states.get("flights", KEYS[0], deadline=1.0), Found)


async def test_a_silent_instance_is_left_within_the_deadline(
    fakes: list[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.client.request_sender.ATTEMPT_S", 0.2)
    fill(fakes)
    fakes[0].always = hanging
    async with Client([fake.url for fake in fakes]) as states:
        for _ in range(3):
            found = await states.get("flights", KEYS[1], deadline=2.0)
            assert isinstance(found, Found)
            assert found.instance != fakes[0].name
    assert len(fakes[0].requests) == 1  # the silent instance comes last for a while


@pytest.mark.parametrize("kind", ["elsewhere", "catching_up", "unreachable"])
async def test_another_instance_is_tried_after_a_problem_that_may_pass(fakes: list[Fake], kind: str) -> None:
    fill(fakes)
    fakes[0].always = problem_response(kind, 421 if kind == "elsewhere" else 503)
    async with Client([fake.url for fake in fakes]) as states:
        for _ in fakes:
            found = await states.get("flights", KEYS[2])
            assert isinstance(found, Found)
            assert found.instance != fakes[0].name
    assert fakes[0].requests


async def test_an_earlier_version_of_an_instance_that_is_behind_is_not_returned(fakes: list[Fake]) -> None:
    async with Client([fake.url for fake in fakes]) as states:
        for fake in fakes:
            fake.put(entry("k", 9))
        await states.get("flights", "k")
        fakes[0].requests.clear()
        fakes[0].always = older_version(8)
        for _ in fakes:
            found = await states.get("flights", "k")
            assert isinstance(found, Found)
            assert (found.version, found.instance != fakes[0].name) == (9, True)
    assert fakes[0].requests


async def test_a_client_recovers_when_the_service_does(fake: Fake) -> None:
    fake.put(entry("k", 1))
    fake.always = problem_response("failed", 500)
    async with Client(fake.url) as states:
        with pytest.raises(NoAnswerError):
            await states.get("flights", "k", deadline=0.1)
        fake.always = None
        assert isinstance(await states.get("flights", "k"), Found)


@pytest.mark.parametrize(
    "body", [None, {}, {"instances": None}, {"instances": [{"url": 5}]}, {"instances": [{"url": "ftp://x"}]}]
)
async def test_an_invalid_list_of_instances_is_ignored(fake: Fake, body: dict[str, object] | None) -> None:
    fake.put(entry("k", 1))
    fake.instances = body
    async with Client(fake.url) as states:
        await states.get("flights", "k")
        await until(lambda: fake.discoveries == 1, "requested")
        assert isinstance(await states.get("flights", "k"), Found)
        assert states._addresses.by_preference() == [fake.url]  # noqa: SLF001


class Listing(ClientTransport):
    """A transport to instances that list these addresses."""

    def __init__(self, *urls: str) -> None:
        super().__init__(None, 1)
        self.urls = urls
        self.asked: list[str] = []
        self.silent: str | None = None

    async def send(self, url: str, *_: Any, **__: Any) -> Any:
        self.asked.append(url)
        if url == self.silent:
            raise UnreachableError(url)
        return InstanceResponse(url, 200, {"instances": [{"url": one} for one in self.urls]}, None)


def lowest(low: float, _: float) -> float:
    return low


async def turns(addresses: Addresses) -> list[list[str]]:
    """Return the addresses of two calls, after the request for the instances, if one is due."""
    addresses.by_preference()
    if addresses._task is not None:  # noqa: SLF001
        await addresses._task  # noqa: SLF001
    return [addresses.by_preference() for _ in range(2)]


async def test_addresses_take_turns_and_those_that_failed_come_last() -> None:
    clock, given = Clock(), ["http://a", "http://b"]
    addresses = Addresses(given, Listing(), clock, discover=False, draw=lowest)
    assert [addresses.by_preference() for _ in range(2)] == [given, given[::-1]]
    addresses.failed("http://a")
    assert [addresses.by_preference() for _ in range(2)] == [given[::-1]] * 2
    clock.now += FIRST_SUSPICION_S
    assert [addresses.by_preference() for _ in range(2)] == [given, given[::-1]]
    addresses.failed("http://a")
    clock.now += FIRST_SUSPICION_S
    assert [addresses.by_preference() for _ in range(2)] == [given[::-1]] * 2, "the second failure counts for longer"
    addresses.worked("http://a")
    assert [addresses.by_preference() for _ in range(2)] == [given, given[::-1]]


async def test_a_listed_address_waits_until_it_has_answered_again_after_a_failure() -> None:
    clock, transport = Clock(), Listing("http://a", "http://b")
    addresses = Addresses(["http://a"], transport, clock, discover=True)
    assert addresses.by_preference() == ["http://a"]
    assert {first for first, _ in await turns(addresses)} == {"http://a", "http://b"}
    transport.silent = "http://b"
    addresses.failed("http://b")
    clock.now += MAX_SUSPICION_S
    assert await turns(addresses) == [["http://a", "http://b"]] * 2
    transport.silent = None
    clock.now += REFRESH_S
    assert {first for first, _ in await turns(addresses)} == {"http://a", "http://b"}


async def test_instances_that_replaced_others_one_by_one_are_found() -> None:
    clock, transport = Clock(), Listing("http://a", "http://b")
    addresses = Addresses(["http://a"], transport, clock, discover=True)
    assert {*(await turns(addresses))[0]} == {"http://a", "http://b"}
    transport.urls = ("http://a", "http://c")
    clock.now += REFRESH_S - 1
    assert {*(await turns(addresses))[0]} == {"http://a", "http://b"}
    clock.now += 1
    assert {*(await turns(addresses))[0]} == {"http://a", "http://c"}


async def test_a_token_for_https_is_not_sent_over_http() -> None:
    transport = Listing("https://b", "http://c")
    addresses = Addresses(["https://a"], transport, Clock(), discover=True)
    assert {*(await turns(addresses))[0]} == {"https://a", "https://b"} == {*transport.asked}


async def test_a_list_without_a_usable_address_is_requested_at_intervals_only() -> None:
    """As behind a proxy that ends TLS, where the instances list what they listen at."""
    clock, transport = Clock(), Listing("http://b")
    addresses = Addresses(["https://a"], transport, clock, discover=True)
    for _ in range(int(REFRESH_S / PAUSE_S)):
        assert await turns(addresses) == [["https://a"]] * 2
        clock.now += PAUSE_S
    assert len(transport.asked) == 1
    await turns(addresses)
    assert len(transport.asked) == 2
