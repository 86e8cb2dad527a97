"""The fast path on the wire: the same bytes as from aiohttp, for every input and every split of it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.metrics import query as metrics
from contracts.model.named_state import QueryOptions
from services.query.cluster import PartitionStatus, Role
from tests.services.query.http.instance import Instance, Response, answering, request
from tests.services.query.in_memory import NOW, MemoryRouting, ScratchStore, a_state, dependencies_of, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


SECRET = "a-secret-of-a-dashboard"  # noqa: S105  # opens nothing
HOUR = 3_600_000
GET = request("/v1/states/flights/UA1")
BATCH = json.dumps({"keys": ["UA1", "old", "none", "away"]}).encode()
LAST = b"GET /v1/states HTTP/1.0\r\n\r\n"
"""A request after which the server closes the connection."""
REQUESTS = {
    "a key": GET,
    "another": request("/v1/states/flights/UA%201"),
    "an expired key": request("/v1/states/flights/old"),
    "never seen": request("/v1/states/flights/none"),
    "catching up": request("/v1/states/flights/early"),
    "elsewhere": request("/v1/states/flights/away"),
    "not modified": request("/v1/states/flights/UA1", headers={"If-None-Match": f'"{NOW}.0.1"'}),
    "modified": request("/v1/states/flights/UA1", headers={"If-None-Match": '"1.1"'}),
    "twice the tag": b"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\n"
    b"If-None-Match: *\r\nIf-None-Match: x\r\n\r\n",
    "another name": request("/v1/states/flights/UA1", headers={"Host": "evil.example"}),
    "a page of another origin": request("/v1/states/flights/UA1", headers={"Origin": "https://evil.example"}),
    "our page": request("/v1/states/flights/UA1", headers={"Origin": "http://localhost"}),
    "a batch": request("/v1/states/flights:batchGet", "POST", body=BATCH),
    "an empty batch": request("/v1/states/flights:batchGet", "POST", body=b'{"keys":[]}'),
    "no batch": request("/v1/states/flights:batchGet", "POST", body=b'{"keys":'),
    "unknown state": request("/v1/states/x/y"),
    "unknown batch": request("/v1/states/x:batchGet", "POST", body=BATCH),
    "not utf-8": request("/v1/states/flights/%FF"),
    "fields": request("/v1/states/flights/UA1?fields=a.b"),
    "keep-alive": request("/v1/states/flights/UA1", headers={"Connection": "keep-alive"}),
    "close": request("/v1/states/flights/UA1", headers={"Connection": "close"}),
    "1.0": b"GET /v1/states/flights/UA1 HTTP/1.0\r\n\r\n",
    "1.0 kept": b"GET /v1/states/flights/UA1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "absolute": b"GET http://x/v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a body": request("/v1/states/flights/UA1", body=b"x" * 100),
    "chunked": b"POST /v1/states/flights:batchGet HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'd\r\n{"keys":["a"]\r\n1\r\n}\r\n0\r\n\r\n',
    "both lengths": b"POST /v1/states/flights:batchGet HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "odd length": b"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\nhello",
    "a fold": b"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "a space before the colon": b"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "no name": b"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
    "a control": b"GET /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    "bare line ends": b"GET /v1/states/flights/UA1 HTTP/1.1\nHost: localhost\n\n",
    "two spaces": b"GET  /v1/states/flights/UA1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": request("/v1/states/flights/UA1", headers={"X": "y" * 9000}),
    "a long key": request("/v1/states/flights/" + "k" * 4000),
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "head": request("/v1/states/flights/UA1", "HEAD"),
    "delete": request("/v1/states/flights/UA1", "DELETE"),
    "deep": request("/v1/states/flights/UA1/x/y"),
    "a slash at the end": request("/v1/states/flights/"),
}
ENDLESS = [
    "a key", "another", "a batch", "elsewhere", "fields", "head", "no batch", "never seen", "not modified", "delete",
    "a body", "unknown state", "chunked", "a long key",
]  # fmt: skip
"""Requests after which the connection stays open."""


def a_world() -> Instance:
    """Return an instance with partitions of each role and keys of each kind."""
    flights = a_state(
        lifetime=timedelta(hours=1), query=QueryOptions(stale_after=timedelta(seconds=2), indexes=("state.status",))
    )
    dependencies = dependencies_of(flights, rate=0)
    store, routing = dependencies.stores["flights"], dependencies.routing
    assert isinstance(store, ScratchStore)
    assert isinstance(routing, MemoryRouting)
    store.put("old", window_start=NOW - 3 * HOUR)
    for key, at in (("UA1", 0), ("UA 1", 0), ("early", 1), ("away", 2)):
        store.put(key, partition=at)
    routing.own = PartitionStatus(Role.OWNER, 3)
    routing.others = {1: PartitionStatus(Role.CATCHING_UP, 9), 2: PartitionStatus(Role.ELSEWHERE, 0)}
    return Instance(dependencies, hot=False)


@asynccontextmanager
async def both() -> AsyncIterator[tuple[Instance, Instance]]:
    """Serve the same dependencies with the fast path and with aiohttp alone."""
    dependencies = a_world().dependencies
    async with answering(dependencies, hot=True) as hot, answering(dependencies, hot=False) as plain:
        yield hot, plain


async def exchanged(instance: Instance, pieces: list[bytes]) -> bytes:
    """Send these pieces one by one and return all bytes of the responses."""
    async with instance.connected() as connection:
        for piece in pieces:
            connection.send(piece)
            await connection.writer.drain()
            await asyncio.sleep(0)
        connection.send(LAST)
        return await connection.rest()


@pytest.mark.parametrize("name", REQUESTS)
async def test_the_fast_path_returns_the_same_bytes(name: str) -> None:
    async with both() as (hot, plain):
        sent = REQUESTS[name]
        received, expected = await exchanged(hot, [sent]), await exchanged(plain, [sent])
        assert received.startswith(b"HTTP/1.")
        assert received == expected


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
async def test_pipelined_requests_are_answered_in_order_however_they_are_split(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(ENDLESS), min_size=1, max_size=6))
    whole = b"".join(REQUESTS[name] for name in names)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    async with both() as (hot, plain):
        received = await exchanged(hot, pieces)
        expected = [await exchanged(plain, [REQUESTS[name]]) for name in names]
        last = await exchanged(plain, [])
        assert received == b"".join(one.removesuffix(last) for one in expected) + last


async def test_the_fast_path_does_not_call_aiohttp() -> None:
    async with both() as (hot, _):
        for name in ("a key", "another", "an expired key", "never seen", "not modified"):
            await _request(hot, REQUESTS[name])
        body = json.dumps({"keys": ["UA1", "old"]}).encode()
        await _request(hot, request("/v1/states/flights:batchGet", "POST", body=body))
        taken = hot.dependencies.counts.histograms(metrics.REQUEST_SECONDS)[()]
        assert taken.count == 0
        await _request(hot, REQUESTS["fields"])
        assert taken.count == 1
        assert hot.dependencies.counts.get(metrics.REQUESTS) == 7
        assert hot.dependencies.counts.get(metrics.KEYS, "flights") == 8


async def test_responses_to_a_client_that_reads_nothing_are_bounded() -> None:
    async with both() as (hot, _):
        store = hot.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        store.put("UA1", version=2, value=b'{"a":"' + b"x" * 100_000 + b'"}')
        async with hot.connected() as connection:
            connection.send(GET * 2000)
            await until(lambda: hot.dependencies.counts.get(metrics.REQUESTS) > 0)
            for _ in range(10):
                await _request(hot, REQUESTS["never seen"])
            assert hot.dependencies.counts.get(metrics.REQUESTS) < 1000, "a closed connection gets no 200 MB"
            for _ in range(2000):
                assert (await connection.response()).status == 200


async def test_a_failure_is_answered_by_both_fronts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with both() as instances:
        for instance in instances:
            monkeypatch.setattr(instance.dependencies.stores["flights"], "get", Mock(side_effect=OSError("disk")))
            assert (await _request(instance, GET)).kind == "failed"


async def test_a_body_beyond_the_limit_is_rejected_by_both_fronts() -> None:
    body = json.dumps({"keys": ["UA1"] * 200}).encode()
    dependencies = dependencies_of(a_state(), largest_request=len(body) - 1)
    for hot in (True, False):
        async with answering(dependencies, hot=hot) as instance:
            sent = request("/v1/states/flights:batchGet", "POST", body=body)
            assert (await _request(instance, sent)).kind == "too_large"


async def test_an_upgrade_is_ignored() -> None:
    sent = request("/v1/states/flights/UA1", headers={"Connection": "Upgrade", "Upgrade": "h2c"})
    async with both() as (hot, plain):
        assert (await _request(hot, sent)).raw == (await _request(plain, sent)).raw


async def test_a_slow_request_does_not_delay_others() -> None:
    async with both() as (hot, _), hot.connected() as slow:
        slow.send(GET[:20])
        assert (await _request(hot, GET)).status == 200
        slow.send(GET[20:])
        assert (await slow.response()).status == 200


async def _request(instance: Instance, data: bytes) -> Response:
    async with instance.connected() as connection:
        connection.send(data)
        return await connection.response()
