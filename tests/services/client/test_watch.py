"""Watches of one key and of many over a WebSocket that breaks."""

from __future__ import annotations

import asyncio
import socket
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
    Left,
    Mark,
    NeverSeen,
    NoAnswerError,
    RejectedError,
    Removed,
    WatchFilter,
)
from tests.deadline import DEADLINE_S
from tests.services.client.fake_service import body_response, entry, problem, problem_response, until
from tests.services.client.streaming import End, Streaming, message
from tests.services.client.test_get import Flight

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

KEY = "UA/1545"
PLACE = {"state": "flights", "key": KEY}
PROGRESS = {"waiting": 1, "conflated": 2, "oldest_ms": 3, "states": {"flights": {"lag": {"records": 4}}}}
ONE = WatchFilter("flights", KEY)
SOME = WatchFilter("flights", prefix="UA/", where={"state.status": "landed"}, current=False)
COMMANDS = [
    {"type": "subscribe", "id": "0", "state": "flights", "current": True, "key": KEY},
    {
        "type": "subscribe",
        "id": "1",
        "state": "flights",
        "current": False,
        "prefix": "UA/",
        "where": {"state.status": "landed"},
    },
]


def answer_json(version: int, **others: Any) -> dict[str, Any]:
    return {**entry(KEY, version, **others), "role": "owner", "instance": "q1"}


async def following(updates: AsyncGenerator[Any, None], count: int) -> list[Any]:
    """Return the next updates."""
    async with asyncio.timeout(DEADLINE_S):
        return [await anext(updates) for _ in range(count)]


def versions(updates: list[Any]) -> list[int]:
    return [update.version for update in updates]


async def test_each_change_of_a_key_is_delivered(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 5))
        opened = await streaming.connection(0)
        opened.send(
            message(PLACE, kind="never_seen"),
            message(answer_json(1)),
            message(PROGRESS, kind="mark"),
            message(answer_json(2)),
            message(PLACE, kind="removed"),
            message(answer_json(1)),
        )
        never, first, second, removed, again = await reading
    assert opened.received == COMMANDS[:1]
    assert isinstance(never, NeverSeen)
    assert (first.version, first.value["device_id"]) == (1, KEY)
    assert second.version == 2
    assert removed == Removed("flights", KEY)
    assert again.version == 1


async def test_each_filter_is_subscribed_and_delivered(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE, SOME)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        opened = await streaming.connection(0)
        assert await opened.commands(2) == COMMANDS
        opened.send(
            b'{"type":"subscribed","id":"0"}',
            message(answer_json(1), "0", "1"),
            b'{"type":"current","id":"0","partitions":[0]}',
            message(PROGRESS, kind="mark"),
            message(PLACE, "1", kind="left"),
            message(answer_json(2), "0"),
        )
        first, left, second = await reading
    assert versions([first, second]) == [1, 2]
    assert left == Left("flights", KEY)


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


async def test_a_broken_connection_resumes_after_the_last_version(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY, model=Flight)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        for number, end in enumerate(End):
            (await streaming.connection(number)).send(message(answer_json(number + 1)), end)
        last = await streaming.connection(2)
        last.send(*(message(answer_json(version)) for version in (2, 3)))
        found = await reading
    assert versions(found) == [1, 2, 3]
    assert found[0].value == Flight.model_validate(answer_json(1)["value"])
    assert [one.received[0].get("after") for one in streaming.opened] == [None, "1", "2"]


async def test_a_key_that_was_removed_resumes_after_no_version(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        (await streaming.connection(0)).send(message(answer_json(5)), message(PLACE, kind="removed"), End.ABORTED)
        again = await streaming.connection(1)
        again.send(message(answer_json(1)))
        found, removed, new = await reading
    assert (found.version, type(removed), new.version) == (5, Removed, 1)
    assert "after" not in again.received[0]


async def test_only_filters_of_one_key_resume_after_a_version(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE, SOME)) as updates:
        reading = asyncio.create_task(following(updates, 2))
        (await streaming.connection(0)).send(message(answer_json(1), "0", "1"), End.ABORTED)
        again = await streaming.connection(1)
        assert await again.commands(2) == [{**COMMANDS[0], "after": "1"}, COMMANDS[1]]
        again.send(message(answer_json(1), "1"), message(answer_json(2), "0"))
        assert versions(await reading) == [1, 2]


async def test_a_client_that_was_too_slow_subscribes_again(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(SOME)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.send(b'{"type":"reset","ids":["0"],"conflated":5}')
        assert len(await opened.commands(2)) == 2
        opened.send(message(answer_json(1)))
        assert versions(await reading) == [1]


async def test_a_revoked_token_is_retried(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        first = await streaming.connection(0)
        first.send(message({"id": None, "problem": problem("no_token", 401)}, kind="error"), End.CLOSED)
        (await streaming.connection(1)).send(message(answer_json(1)))
        assert versions(await reading) == [1]


async def test_no_earlier_version_is_delivered_after_a_break(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 2))
        (await streaming.connection(0)).send(message(answer_json(7)), End.ABORTED)
        (await streaming.connection(1)).send(*(message(answer_json(version)) for version in (5, 6, 7, 8)))
        assert versions(await reading) == [7, 8]


async def test_nothing_older_than_the_last_read_is_delivered(streaming: Streaming) -> None:
    streaming.put(entry(KEY, 7))
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        await states.get("flights", KEY)
        reading = asyncio.create_task(following(updates, 1))
        (await streaming.connection(0)).send(message(answer_json(6)), message(answer_json(7)))
        assert versions(await reading) == [7]


async def test_an_expiry_is_delivered_once(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        expiry = message(PLACE, kind="expired")
        (await streaming.connection(0)).send(message(answer_json(1)), expiry, End.ABORTED)
        (await streaming.connection(1)).send(expiry, message(answer_json(1, window_start="2026-01-02T00:00:00Z")))
        found, expired, again = await reading
    assert isinstance(found, Found)
    assert isinstance(expired, Expired)
    assert isinstance(again, Found)


async def test_marks_are_delivered_on_request(streaming: Streaming) -> None:
    complete = {**PROGRESS, "states": {"flights": {"lag": {"records": 0}, "positions": {"0": 17}}}}
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY, marks=True)) as updates:
        reading = asyncio.create_task(following(updates, 2))
        (await streaming.connection(0)).send(message(PROGRESS, kind="mark"), message(complete, kind="mark"))
        first, second = await reading
    assert first == Mark(1, 2, timedelta(milliseconds=3), {"flights": 4}, {})
    assert second.positions == {"flights": {"0": 17}}


async def test_another_instance_is_watched_after_the_first_one_stops(pair: list[Streaming]) -> None:
    first, other = pair
    async with Client(first.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 2))
        opened = await first.connection(0)
        opened.send(message(answer_json(1)))
        await until(opened.queue.empty, "sent")
        await until(lambda: len(states._addresses.by_preference()) == len(pair), "listed")  # noqa: SLF001
        opened.send(End.ABORTED)
        await first.stop()
        taken = await other.connection(0)
        taken.send(message(answer_json(2)))
        assert versions(await reading) == [1, 2]
    assert taken.received[0]["after"] == "1"


async def test_a_silent_connection_is_replaced(streaming: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.client.transport.SILENCE_S", 0.1)
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        (await streaming.connection(1)).send(message(answer_json(1)))
        assert versions(await reading) == [1]


async def test_the_callers_processing_time_does_not_count_as_silence(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY, patience=0.3)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        first = await streaming.connection(0)
        first.send(message(answer_json(1)))
        await reading
        first.send(End.ABORTED)
        await asyncio.sleep(0.5)  # the caller processes the first update longer than the patience
        reading = asyncio.create_task(following(updates, 1))
        (await streaming.connection(1)).send(message(answer_json(2)))
        assert versions(await reading) == [2]


async def test_a_connection_without_a_response_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.client.watch.ATTEMPT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # the kernel accepts connections, and no process responds
        port = mute.getsockname()[1]
        async with Client(f"http://127.0.0.1:{port}", discover=False) as states:
            with pytest.raises(NoAnswerError, match=r"watching flights/UA/1545: no answer within 0.3 s"):
                await following(states.watch("flights", KEY, patience=0.3), 1)


async def test_a_watch_raises_when_its_patience_is_over(streaming: Streaming) -> None:
    await streaming.stop()
    async with Client(streaming.url) as states:
        with pytest.raises(NoAnswerError, match=r"watching flights/UA/1545: no answer within 0.2 s"):
            await following(states.watch("flights", KEY, patience=0.2), 1)
        with pytest.raises(NoAnswerError, match="watching flights: no answer"):
            await following(states.watch_many(ONE, patience=0.2), 1)


async def test_transient_failures_are_retried(streaming: Streaming) -> None:
    streaming.faults.extend([problem_response("unreachable", 503), body_response(b"", 502)])
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        refused = message({"id": "0", "problem": {**problem("too_many", 429), "retry_after": 0}}, kind="error")
        (await streaming.connection(0)).send(refused)
        (await streaming.connection(1)).send(message(answer_json(1)))
        assert versions(await reading) == [1]


@pytest.mark.parametrize(
    ("kind", "status", "error"), [("not_yours", 403, AccessDeniedError), ("unknown_path", 404, RejectedError)]
)
async def test_a_permanent_failure_raises_its_reason(
    streaming: Streaming, kind: str, status: int, error: type[Exception]
) -> None:
    streaming.always = problem_response(kind, status)
    async with Client(streaming.url) as states:
        with pytest.raises(error, match=rf"^flights/UA/1545 was refused \({status}\): it is {kind}"):
            await following(states.watch("flights", KEY), 1)
        with pytest.raises(error, match=rf"^flights was refused \({status}\): it is {kind}"):
            await following(states.watch_many(ONE, SOME), 1)


@pytest.mark.parametrize(("kind", "status"), [("bad_request", 400), ("too_many", 429)])
async def test_a_rejected_subscription_raises(streaming: Streaming, kind: str, status: int) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE, SOME)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.send(message({"id": "1", "problem": problem(kind, status)}, kind="error"))
        with pytest.raises(RejectedError, match=r"prefix='UA/'.* was refused"):
            await reading


GARBAGE = [
    b"{",
    b"5",
    b"{}",
    b'{"type":"state","ids":["9"],"answer":{}}',
    b'{"type":"state","ids":["0"],"tag":"1","answer":{}}',
    b'{"type":"expired","ids":["0"]}',
]


@pytest.mark.parametrize("frame", GARBAGE)
async def test_malformed_messages_raise(streaming: Streaming, frame: bytes) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        (await streaming.connection(0)).send(frame)
        with pytest.raises(InvalidResponseError):
            await reading


async def test_messages_of_an_unknown_type_are_ignored(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch("flights", KEY)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        (await streaming.connection(0)).send(b'{"type":"paused","id":"0"}', message(answer_json(1), "0"))
        assert versions(await reading) == [1]


async def test_a_response_that_is_no_websocket_raises(streaming: Streaming) -> None:
    streaming.always = body_response(b"<html>")
    async with Client(streaming.url) as states:
        with pytest.raises(InvalidResponseError, match="check the address"):
            await following(states.watch("flights", KEY), 1)
