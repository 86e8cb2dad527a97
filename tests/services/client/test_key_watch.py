"""The watch of one key over streams that break."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from services.client import (
    AccessDeniedError,
    Client,
    Expired,
    Found,
    InvalidResponseError,
    Mark,
    NeverSeen,
    NoAnswerError,
    RejectedError,
    Removed,
)
from tests.services.client.fake_service import body_response, cluster, entry, problem_response, until
from tests.services.client.streaming import End, Streaming, event
from tests.services.client.test_get import Flight
from tests.services.client.test_routes import discover_owners

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

KEY = "UA/1545"
PLACE = {"state": "flights", "key": KEY}
PROGRESS = {"waiting": 1, "conflated": 2, "oldest_ms": 3, "states": {"flights": {"lag": {"records": 4}}}}


def answer_json(version: int, **others: Any) -> dict[str, Any]:
    return {**entry(KEY, version, **others), "role": "owner", "instance": "q1"}


async def following(updates: AsyncGenerator[Any, None], count: int) -> list[Any]:
    """Return the next updates."""
    async with asyncio.timeout(30):
        return [await anext(updates) for _ in range(count)]


def versions(updates: list[Any]) -> list[int]:
    return [update.version for update in updates]


async def test_each_change_is_delivered(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 5))
        opened = await streaming.connection(0)
        for piece in (
            b"retry: 1000\n\n",
            event(PLACE, "never_seen"),
            event(answer_json(1)),
            event(PROGRESS, "mark"),
            event(answer_json(2)),
            event(PLACE, "removed"),
            event(answer_json(1)),
        ):
            opened.queue.put_nowait(piece)
        never, first, second, removed, again = await reading
    assert opened.path == "/v1/states/flights/UA%2F1545/watch"
    assert isinstance(never, NeverSeen)
    assert (first.version, first.value["device_id"]) == (1, KEY)
    assert second.version == 2
    assert removed == Removed("flights", KEY)
    assert again.version == 1


async def test_watches_take_no_connection_from_reads(streaming: Streaming) -> None:
    streaming.put(entry(KEY, 1))
    async with Client(streaming.url, connections=1, deadline=2) as states, asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(_first(states, f"k{number}")) for number in range(3)]
        await streaming.connection(len(watching) - 1)
        assert isinstance(await states.get("flights", KEY), Found)
        for one in watching:
            one.cancel()


async def _first(states: Client, key: str) -> None:
    async for _ in states.watch("flights", key):
        pass


async def test_a_broken_stream_resumes_after_the_last_version(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY, model=Flight)) as updates:
        reading = asyncio.create_task(following(updates, 4))
        for number, end in enumerate((End.ABORTED, End.CLOSED)):
            opened = await streaming.connection(number)
            opened.queue.put_nowait(event(answer_json(number + 1)))
            opened.queue.put_nowait(event(answer_json(number + 2))[:-20])
            opened.queue.put_nowait(end)
        last = await streaming.connection(2)
        last.queue.put_nowait(event(answer_json(2)) + event(answer_json(3)) + event(answer_json(4)))
        found = await reading
    assert versions(found) == [1, 2, 3, 4]
    assert found[0].value == Flight.model_validate(answer_json(1)["value"])
    assert [one.last_id for one in streaming.opened] == [None, "1", "2"]


async def test_a_revoked_token_is_retried(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        first = await streaming.connection(0)
        first.queue.put_nowait(event({"type": "no_token", "status": 401}, "problem"))
        first.queue.put_nowait(End.CLOSED)
        second = await streaming.connection(1)
        second.queue.put_nowait(event(answer_json(1)))
        assert versions(await reading) == [1]


async def test_no_earlier_version_is_delivered_after_a_break(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 2))
        first = await streaming.connection(0)
        first.queue.put_nowait(event(answer_json(7)))
        first.queue.put_nowait(End.ABORTED)
        second = await streaming.connection(1)
        for version in (5, 6, 7, 8):
            second.queue.put_nowait(event(answer_json(version)))
        assert versions(await reading) == [7, 8]


async def test_nothing_older_than_the_last_version_is_delivered(streaming: Streaming) -> None:
    streaming.put(entry(KEY, 7))
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        await states.get("flights", KEY)
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(event(answer_json(6)) + event(answer_json(7)))
        assert versions(await reading) == [7]


async def test_an_expiry_is_delivered_once(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        first = await streaming.connection(0)
        first.queue.put_nowait(event(answer_json(1)) + event(PLACE, "expired"))
        first.queue.put_nowait(End.ABORTED)
        second = await streaming.connection(1)
        second.queue.put_nowait(event(PLACE, "expired") + event(answer_json(1, window_start="2026-01-02T00:00:00Z")))
        found, expired, again = await reading
    assert isinstance(found, Found)
    assert isinstance(expired, Expired)
    assert isinstance(again, Found)


async def test_marks_are_delivered_on_request(streaming: Streaming) -> None:
    complete = {**PROGRESS, "states": {"flights": {"lag": {"records": 0}, "positions": {"0": 17}}}}
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY, marks=True)) as updates:
        reading = asyncio.create_task(following(updates, 2))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(event(PROGRESS, "mark") + event(complete, "mark"))
        first, second = await reading
    assert first == Mark(1, 2, timedelta(milliseconds=3), {"flights": 4}, {})
    assert second.positions == {"flights": {"0": 17}}


async def test_the_owner_is_watched_and_another_instance_after_it_stops(pair: list[Streaming]) -> None:
    for one in pair:
        one.put(*(entry(f"k{number}", 1) for number in range(40)))
    async with Client([one.url for one in pair]) as states:
        await discover_owners(states, pair)
        owner = next(one for one in pair if one.url == states._discovery.owner("flights", KEY))  # noqa: SLF001
        other = next(one for one in pair if one is not owner)
        async with aclosing(states.watch("flights", KEY)) as updates:
            reading = asyncio.create_task(following(updates, 2))
            opened = await owner.connection(0)
            opened.queue.put_nowait(event(answer_json(1)))
            await until(opened.queue.empty, "sent")
            opened.queue.put_nowait(End.ABORTED)
            await owner.stop()
            cluster(other)
            taken = await other.connection(0)
            taken.queue.put_nowait(event(answer_json(2)))
            assert versions(await reading) == [1, 2]
    assert taken.last_id == "1"


async def test_a_silent_stream_is_reconnected(streaming: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.client.key_watch.SILENCE_S", 0.1)
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        second = await streaming.connection(1)
        second.queue.put_nowait(event(answer_json(1)))
        assert versions(await reading) == [1]


async def test_the_callers_processing_time_does_not_count_as_silence(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY, patience=0.3)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        first = await streaming.connection(0)
        first.queue.put_nowait(event(answer_json(1)))
        await reading
        first.queue.put_nowait(End.ABORTED)
        await asyncio.sleep(0.5)  # the caller processes the first update longer than the patience
        reading = asyncio.create_task(following(updates, 1))
        second = await streaming.connection(1)
        second.queue.put_nowait(event(answer_json(2)))
        assert versions(await reading) == [2]


async def test_a_watch_raises_when_its_patience_is_over(streaming: Streaming) -> None:
    await streaming.stop()
    async with Client(streaming.url) as states:
        with pytest.raises(NoAnswerError, match=r"watching flights/UA/1545: no answer within 0.2 s"):
            await following(states.watch("flights", KEY, patience=0.2), 1)


async def test_transient_failures_are_retried(streaming: Streaming) -> None:
    streaming.faults.extend(
        [problem_response("unreachable", 503), problem_response("elsewhere", 421), body_response(b"", 502)]
    )
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(event(answer_json(1)))
        assert versions(await reading) == [1]


@pytest.mark.parametrize(
    ("kind", "status", "error"), [("not_yours", 403, AccessDeniedError), ("unknown_state", 404, RejectedError)]
)
async def test_a_permanent_failure_raises(streaming: Streaming, kind: str, status: int, error: type[Exception]) -> None:
    streaming.always = problem_response(kind, status)
    async with Client(streaming.url) as states:
        with pytest.raises(error, match=f"it is {kind}"):
            await following(states.watch("flights", KEY), 1)


GARBAGE = [b"event: state\ndata: {\n\n", b"data: {}\n\n", b"event: state\ndata: {}\n\n", b"event: expired\ndata: 5\n\n"]


@pytest.mark.parametrize("piece", GARBAGE)
async def test_malformed_responses_raise(streaming: Streaming, piece: bytes) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(piece)
        with pytest.raises(InvalidResponseError):
            await reading


async def test_a_response_without_a_stream_raises(streaming: Streaming) -> None:
    streaming.always = body_response(b"<html>")
    async with Client(streaming.url) as states:
        with pytest.raises(InvalidResponseError, match="no stream"):
            await following(states.watch("flights", KEY), 1)
