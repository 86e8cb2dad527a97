"""The watch of many keys over one WebSocket that breaks."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing

import pytest

from services.client import Client, InvalidResponseError, Left, Mark, NoAnswerError, RejectedError, WatchFilter
from tests.services.client.fake_service import problem, until
from tests.services.client.streaming import End, Opened, Streaming, message
from tests.services.client.test_key_watch import KEY, PLACE, PROGRESS, answer_json, following, versions

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


async def wait_for_messages(opened: Opened, count: int) -> list[dict[str, object]]:
    await until(lambda: len(opened.received) >= count, "the client's messages")
    return opened.received


async def test_each_filter_is_subscribed_and_delivered(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE, SOME)) as updates:
        reading = asyncio.create_task(following(updates, 3))
        opened = await streaming.connection(0)
        assert await wait_for_messages(opened, 2) == COMMANDS
        for frame in (
            b'{"type":"subscribed","id":"0"}',
            message(answer_json(1), "0", "1"),
            b'{"type":"current","id":"0","partitions":[0]}',
            message(PROGRESS, kind="mark"),
            message(PLACE, "1", kind="left"),
            message(answer_json(2), "0"),
        ):
            opened.queue.put_nowait(frame)
        first, left, second = await reading
    assert versions([first, second]) == [1, 2]
    assert left == Left("flights", KEY)


@pytest.mark.parametrize("end", End)
async def test_a_broken_connection_is_reconnected(streaming: Streaming, end: End) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE, SOME)) as updates:
        reading = asyncio.create_task(following(updates, 2))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(message(answer_json(1), "0"))
        opened.queue.put_nowait(end)
        again = await streaming.connection(1)
        assert await wait_for_messages(again, 2) == [{**COMMANDS[0], "after": "1"}, COMMANDS[1]]
        again.queue.put_nowait(message(answer_json(1), "0"))
        again.queue.put_nowait(message(answer_json(2), "0"))
        assert versions(await reading) == [1, 2]


async def test_a_client_that_was_too_slow_subscribes_again(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(SOME)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(b'{"type":"reset","ids":["0"],"conflated":5}')
        assert len(await wait_for_messages(opened, 2)) == 2
        opened.queue.put_nowait(message(answer_json(1), "0"))
        assert versions(await reading) == [1]


async def test_marks_are_delivered_on_request(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE, marks=True)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(message(PROGRESS, kind="mark"))
        (mark,) = await reading
    assert isinstance(mark, Mark)
    assert mark.lag == {"flights": 4}


async def test_a_rejected_subscription_raises(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE, SOME)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(message({"id": "1", "problem": problem("bad_request", 400)}, kind="error"))
        with pytest.raises(RejectedError, match=r"prefix='UA/'.* was refused"):
            await reading


async def test_a_revoked_token_is_retried(streaming: Streaming) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(message({"id": None, "problem": problem("no_token", 401)}, kind="error"))
        opened.queue.put_nowait(End.CLOSED)
        again = await streaming.connection(1)
        again.queue.put_nowait(message(answer_json(1), "0"))
        assert len(await reading) == 1


@pytest.mark.parametrize("frame", [b"{", b"5", b"{}", b'{"type":"new"}', b'{"type":"state","ids":["9"],"answer":{}}'])
async def test_malformed_responses_raise(streaming: Streaming, frame: bytes) -> None:
    async with Client(streaming.url) as states, aclosing(states.watch_many(ONE)) as updates:
        reading = asyncio.create_task(following(updates, 1))
        opened = await streaming.connection(0)
        opened.queue.put_nowait(frame)
        with pytest.raises(InvalidResponseError):
            await reading


async def test_a_connection_without_a_response_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.client.multi_watch.ATTEMPT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # the kernel accepts connections, and no process responds
        port = mute.getsockname()[1]
        async with Client(f"http://127.0.0.1:{port}", discover=False) as states:
            with pytest.raises(NoAnswerError, match="watching flights: no answer"):
                await following(states.watch_many(ONE, patience=0.3), 1)


async def test_a_watch_raises_when_its_patience_is_over(streaming: Streaming) -> None:
    await streaming.stop()
    async with Client(streaming.url) as states:
        with pytest.raises(NoAnswerError, match="watching flights: no answer"):
            await following(states.watch_many(ONE, patience=0.2), 1)
