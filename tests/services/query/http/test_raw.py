"""Details of HTTP, on a raw socket."""

from __future__ import annotations

import gzip
import json

import pytest

from contracts.metrics import query as metrics
from tests.services.query.http.instance import Connection, Instance, answering, request
from tests.services.query.http.test_connection import GET, a_world
from tests.services.query.in_memory import until

FIELDS = request("/v1/states/flights/UA1?fields=a.b")
CLOSE = request("/v1/states/flights/UA1", headers={"Connection": "close"})
CLOSE_FIELDS = request("/v1/states/flights/UA1?fields=a.b", headers={"Connection": "close"})
BATCH = json.dumps({"keys": ["UA1"]}).encode()
ZIPPED = gzip.compress(BATCH, mtime=0)
MANY = "/v1/states/flights:batchGet"


@pytest.fixture(params=[True, False], ids=["hot", "aiohttp"])
def hot(request: pytest.FixtureRequest) -> bool:
    """Return whether the fast path is used."""
    return bool(request.param)


@pytest.mark.parametrize(
    "body", [b"no gzip at all", gzip.compress(BATCH, mtime=0)[:-12], gzip.compress(BATCH, mtime=0)[:10] + b"\xff" * 9]
)
async def test_a_body_that_is_not_gzip_is_a_bad_request(
    body: bytes, *, hot: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with answering(a_world().dependencies, hot=hot) as instance:
        response = await instance.ask(MANY, "POST", {"Content-Encoding": "gzip"}, body)
        assert (response.status, response.kind) == (400, "bad_request")
        assert (await instance.ask(MANY, "POST", {"Content-Encoding": "gzip"}, ZIPPED)).status == 200
    assert caplog.records == []


async def test_a_client_that_leaves_within_its_body_is_no_fault(*, hot: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with answering(a_world().dependencies, hot=hot) as instance:
        async with instance.connected() as connection:
            connection.send(request(MANY, "POST", {"Content-Encoding": "gzip"}, ZIPPED)[:-1])
        await until(lambda: instance.dependencies.counts.get(metrics.REQUESTS, "400") == 1)
    assert caplog.records == []


@pytest.mark.parametrize(
    "requests", [CLOSE, CLOSE_FIELDS, GET + CLOSE, FIELDS + CLOSE, FIELDS * 5 + CLOSE_FIELDS], ids=len
)
async def test_data_after_the_last_request_is_ignored(requests: bytes, *, hot: bool) -> None:
    async with answering(a_world().dependencies, hot=hot) as instance:
        for behind in (GET, b"garbage\r\n\r\n", b"\x00", b"\r\n"):
            async with instance.connected() as connection:
                connection.send(requests + behind)
                for _ in range(requests.count(b"GET ")):
                    assert (await connection.response()).status == 200
                assert await connection.rest() == b""


@pytest.mark.parametrize("requests", [GET, FIELDS, GET + FIELDS], ids=len)
async def test_valid_requests_are_answered_before_an_invalid_one(requests: bytes, *, hot: bool) -> None:
    async with answering(a_world().dependencies, hot=hot) as instance, instance.connected() as connection:
        connection.send(requests + b"garbage\r\n\r\n")
        for _ in range(requests.count(b"GET ")):
            assert (await connection.response()).status == 200
        assert (await connection.response()).kind == "bad_request"
        assert await connection.rest() == b""


@pytest.mark.parametrize("path", [MANY, "/v1/states/flights/UA1", "/v1/states", "/nowhere"])
async def test_a_body_that_is_too_long_is_rejected_before_it_is_sent(path: str, *, hot: bool) -> None:
    async with answering(a_world().dependencies, hot=hot) as instance:
        for method in ("GET", "POST"):
            async with instance.connected() as connection:
                connection.send(request(path, method, {"Content-Length": "100000000"}))
                response = await connection.response()
                assert (response.status, response.kind) == (413, "too_large")


async def test_a_chunked_body_that_is_too_long_is_rejected(*, hot: bool) -> None:
    async with answering(a_world().dependencies, hot=hot) as instance, instance.connected() as connection:
        connection.send(request(MANY, "POST", {"Transfer-Encoding": "chunked"}))
        status = await _sent_until_refused(instance, connection)
        assert (status, instance.dependencies.settings.largest_request) == (413, 1024 * 1024)


async def _sent_until_refused(instance: Instance, connection: Connection) -> int:
    for _ in range(2 + instance.dependencies.settings.largest_request // 65536):
        connection.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await connection.writer.drain()
    return (await connection.response()).status


async def test_a_body_may_arrive_in_pieces(*, hot: bool) -> None:
    data = request(MANY, "POST", body=BATCH)
    async with answering(a_world().dependencies, hot=hot) as instance, instance.connected() as connection:
        for at in range(len(data)):
            connection.send(data[at : at + 1])
            await connection.writer.drain()
        assert (await connection.response()).status == 200
