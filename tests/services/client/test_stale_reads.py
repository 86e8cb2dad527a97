"""A client returns no version of a key that is earlier than one it has returned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from services.client import Client, Expired, Found, StaleReadError
from tests.services.client.fake_service import WINDOW_START, at_offset, entry, older_version, problem, shortest_attempt

if TYPE_CHECKING:
    from tests.services.client.fake_service import Fake


async def test_an_earlier_version_is_retried_and_then_raises(fake: Fake) -> None:
    fake.put(entry("k", 7))
    async with Client(fake.url) as states:
        await states.get("flights", "k")
        fake.faults.append(older_version(6))
        again = await states.get("flights", "k")
        assert isinstance(again, Found)
        assert again.version == 7
        assert len(fake.requests) == 3
        fake.always = older_version(6)
        with shortest_attempt(math.inf), pytest.raises(StaleReadError, match="an earlier version than was shown"):
            await states.get("flights", "k")
        assert isinstance(await states.get("flights", "k", as_of=6), Found)


async def test_a_later_window_begins_with_a_low_version(fake: Fake) -> None:
    fake.put(entry("k", 7))
    async with Client(fake.url) as states:
        await states.get("flights", "k")
        fake.put(at_offset(entry("k", 1, window_start="2026-01-02T12:00:00Z"), 9))
        assert _version(await states.get("flights", "k")) == 1
        fake.put(entry("k", 8))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get("flights", "k")


async def test_a_removed_key_may_start_at_a_lower_version(fake: Fake) -> None:
    fake.put(entry("k", 7, window_start=None))
    async with Client(fake.url) as states:
        await states.get("flights", "k")
        del fake.entries["flights", "k"]
        await states.get("flights", "k")
        fake.put(entry("k", 1, window_start=None))
        assert _version(await states.get("flights", "k")) == 1


async def test_an_earlier_version_of_a_later_record_follows_a_removal_that_was_not_seen(fake: Fake) -> None:
    async with Client(fake.url) as states:
        for version, offset in ((7, 20), (1, 22), (2, 23)):
            fake.put(at_offset(entry("k", version), offset))
            assert _version(await states.get("flights", "k")) == version
        for version, offset in ((1, 22), (7, 20)):
            fake.put(at_offset(entry("k", version), offset))
            with shortest_attempt(math.inf), pytest.raises(StaleReadError):
                await states.get("flights", "k")


async def test_an_earlier_copy_of_a_version_does_not_count_as_the_last_record(fake: Fake) -> None:
    async with Client(fake.url) as states:
        for offset in (10, 7):  # a job has published versions 4 and 5 twice
            fake.put(at_offset(entry("k", 5), offset))
            await states.get("flights", "k")
        fake.put(at_offset(entry("k", 4), 9))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get("flights", "k")


def expired_entry(key: str, version: int, start: str = WINDOW_START) -> dict[str, Any]:
    return {"state": "flights", "key": key, **problem("expired", 410, version=version, window_start=start)}


async def test_versions_before_an_expiry_are_not_returned_after_it(fake: Fake) -> None:
    fake.put(entry("k", 7))
    async with Client(fake.url) as states:
        await states.get("flights", "k")
        fake.put(expired_entry("k", 9))
        assert isinstance(await states.get("flights", "k"), Expired)
        for version in (6, 8):
            fake.put(entry("k", version))
            with shortest_attempt(math.inf), pytest.raises(StaleReadError):
                await states.get("flights", "k")
        fake.put(entry("k", 1, window_start="2026-01-02T12:00:00Z"))
        assert _version(await states.get("flights", "k")) == 1
        fake.put(expired_entry("k", 9))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get("flights", "k")


@pytest.mark.parametrize(
    "facts",
    [{}, {"window_start": "?", "version": 9}, {"window_start": WINDOW_START, "version": "9"}, {"window_start": 7}],
)
async def test_an_expiry_without_a_valid_version_keeps_the_high_water_mark(fake: Fake, facts: dict[str, Any]) -> None:
    fake.put(entry("k", 7))
    async with Client(fake.url) as states:
        await states.get("flights", "k")
        fake.put({"state": "flights", "key": "k", **problem("expired", 410, **facts)})
        assert isinstance(await states.get("flights", "k"), Expired)
        fake.put(entry("k", 6))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get("flights", "k")


async def test_the_number_of_remembered_keys_is_limited(fake: Fake) -> None:
    fake.put(entry("a", 7), entry("b", 7))
    async with Client(fake.url, remember=1) as states:
        await states.get("flights", "a")
        await states.get("flights", "b")
        fake.put(entry("a", 6), entry("b", 6))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get("flights", "b")
        assert _version(await states.get("flights", "a")) == 6
    async with Client(fake.url, remember=0) as states:
        for version in (7, 6):
            fake.put(entry("a", version))
            assert _version(await states.get("flights", "a")) == version


def _version(answer: Any) -> int:
    assert isinstance(answer, Found)
    return answer.version


async def test_a_rebuilt_state_is_returned_and_its_earlier_epoch_is_not(fake: Fake) -> None:
    fake.put(entry("k", 61, epoch=100))
    async with Client(fake.url) as states:
        found = await states.get("flights", "k")
        assert isinstance(found, Found)
        assert (found.epoch, found.tag) == (100, "1767268800000.100.61")
        fake.put(entry("k", 1, epoch=200))
        assert _version(await states.get("flights", "k")) == 1
        fake.put(entry("k", 62, epoch=100))
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get("flights", "k")
        fake.put({**expired_entry("k", 62), "epoch": 100})
        with shortest_attempt(math.inf), pytest.raises(StaleReadError):
            await states.get("flights", "k")
        fake.put({**expired_entry("k", 1), "epoch": 200})
        assert isinstance(await states.get("flights", "k"), Expired)
