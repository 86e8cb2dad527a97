"""Bytes that belong to no request: no response of theirs answers another request."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import pytest
from pydantic import BaseModel
from typing_extensions import override

from contracts import Api, Application, Echo, Enriched, Latest, RetryableCallError, State, enrichment
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import assemble
from services.enrichment.calls.session import CheckedRequest
from services.enrichment.calls.transport import HttpTransport, Post
from tests.services.enrichment.calls.calling import BOUNDS
from tests.services.enrichment.calls.straying import Straying, named, read_everything
from tests.services.enrichment.fleet import QUICK, Seen, app, snapshot
from tests.services.enrichment.in_memory import Log, at_work, until
from tests.services.runtime.in_memory import InMemoryProducer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import ClientResponse
    from aiohttp.connector import Connection

    from services.runtime.kafka.values import Output

STRAY = named("/stray")
ANOTHER = "the response answers another request"
HEAD_END = b"\r\n\r\n"
PARTS = [STRAY, STRAY[:-1], b"\x00", b"{}"]
IDS = ["response", "most of a response", "zero", "body"]
HARMLESS = [b"HTTP/1.1 20", b"\r\n", b"\n"]
HARMLESS_IDS = ["part of a head", "line end", "newline"]


@asynccontextmanager
async def calling(server: Straying, *, tls: bool = False) -> AsyncIterator[HttpTransport]:
    async with (
        server.serving(tls=tls),
        HttpTransport(server.url, BOUNDS, clock=time.monotonic, trusted=server.trusted) as transport,
    ):
        yield transport


async def name(transport: HttpTransport, target: str) -> str:
    """The name in the response to a target."""
    found: str = json.loads((await transport.get(target, 30.0)).body)["name"]
    return found


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
async def test_a_quiet_connection_is_used_again(tls: bool) -> None:  # noqa: FBT001
    server = Straying()
    async with calling(server, tls=tls) as transport:
        assert [await name(transport, f"/{n}") for n in range(5)] == [f"/{n}" for n in range(5)]
    assert {connection for connection, _ in server.requests} == {1}


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("stray", PARTS, ids=IDS)
async def test_a_connection_that_received_bytes_while_it_was_idle_is_not_used_again(stray: bytes, tls: bool) -> None:  # noqa: FBT001
    server = Straying()
    async with calling(server, tls=tls) as transport:
        for n in range(3):
            assert await name(transport, f"/{n}") == f"/{n}"
            server.send(stray)
            await read_everything()
    assert [connection for connection, _ in server.requests] == [1, 2, 3]


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("stray", PARTS + HARMLESS, ids=IDS + HARMLESS_IDS)
async def test_unread_bytes_in_the_socket_close_the_connection(stray: bytes, tls: bool) -> None:  # noqa: FBT001
    server = Straying()
    async with calling(server, tls=tls) as transport:
        for n in range(3):
            assert await name(transport, f"/{n}") == f"/{n}"
            server.send(stray)  # into the socket, and the next request follows without a turn of the loop
    assert [connection for connection, _ in server.requests] == [1, 2, 3]


@pytest.mark.parametrize("stray", HARMLESS, ids=HARMLESS_IDS)
async def test_bytes_that_begin_no_response_change_no_answer(stray: bytes) -> None:
    server = Straying(lambda target, _: [named(target) + stray])
    async with calling(server) as transport:
        for n in range(3):
            assert await name(transport, f"/{n}") == f"/{n}"
            server.send(stray)
            await read_everything()


async def test_a_response_that_is_divided_by_the_next_request_answers_no_request() -> None:
    async def divided(at: int) -> set[str]:
        server = Straying(lambda target, before: [STRAY[at:] * bool(before) + named(target)])
        async with calling(server) as transport:
            assert await name(transport, "/0") == "/0"
            server.send(STRAY[:at])
            await read_everything()
            try:
                return {await name(transport, "/1")}
            except RetryableCallError as error:
                return {error.reason}

    found = await asyncio.gather(*(divided(at) for at in range(1, len(STRAY))))
    assert set().union(*found) <= {"/1", "the connection failed (BadResponseError)"}


async def test_every_connection_with_stray_bytes_is_left_and_no_request_is_sent_twice() -> None:
    server = Straying()
    async with calling(server) as transport:
        first = await asyncio.gather(*(name(transport, f"/{n}") for n in range(5)))
        server.send(STRAY)
        await read_everything()
        response = await transport.post(Post("/5", b'{"a": 1}', {"Content-Type": "application/json"}), 30.0)
    assert (first, json.loads(response.body)["name"]) == ([f"/{n}" for n in range(5)], "/5")
    assert sorted(server.requests) == [(n + 1, f"/{n}") for n in range(6)]


async def test_a_response_before_the_first_request_is_a_failed_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    send = CheckedRequest.send

    async def send_late(request: CheckedRequest, conn: Connection) -> ClientResponse:
        await read_everything()
        return await send(request, conn)

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(STRAY)
        greeted.append(writer)

    monkeypatch.setattr(CheckedRequest, "send", send_late)
    greeted: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with HttpTransport(url, BOUNDS, clock=time.monotonic) as transport:
            with pytest.raises(RetryableCallError, match="BadResponseError"):
                await transport.get("/0", 30.0)
        for writer in greeted:
            writer.close()
    assert len(greeted) == 1


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("stray", PARTS, ids=IDS)
@pytest.mark.parametrize("split", ["whole", "head", "body"])
async def test_of_two_responses_to_one_request_none_is_taken(stray: bytes, tls: bool, split: str) -> None:  # noqa: FBT001
    def answered(target: str, _: str | None) -> list[bytes]:
        right = named(target)
        at = {"whole": 0, "head": right.index(HEAD_END) + 4, "body": len(right) - 3}[split]
        segments = [right[:at], right[at:] + stray] if at else [right + stray]
        return segments if target == "/0" else [right]

    server = Straying(answered)
    async with calling(server, tls=tls) as transport:
        with pytest.raises(RetryableCallError, match="BadResponseError"):
            await transport.get("/0", 30.0)
        assert [await name(transport, target) for target in ("/1", "/2")] == ["/1", "/2"]
    assert [connection for connection, _ in server.requests] == [1, 2, 2]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("newlines", [b"", b"\r\n", b"\n", b"\r\n\r\n"])
@pytest.mark.parametrize(
    "segments",
    [
        [named("/0")],
        [named("/0")[:-3], named("/0")[-3:]],
        [b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"name": "/0"}\n'],
        [CHUNKED + b'e\r\n{"name": "/0"}\r\n0\r\n\r\n'],
        [CHUNKED, b'e\r\n{"name": "/0"}\r\n0\r\nX: y\r\n\r\n'],
    ],
    ids=["length", "split", "newline", "chunks", "trailers"],
)
async def test_newlines_after_a_response_are_ignored(segments: list[bytes], newlines: bytes) -> None:
    answer = [*segments[:-1], segments[-1] + newlines]
    server = Straying(lambda *_: answer)
    async with calling(server) as transport:
        assert [await name(transport, "/0") for _ in range(2)] == ["/0", "/0"]


async def test_a_dropped_connection_fails_no_other_request() -> None:
    server = Straying()
    async with calling(server) as transport:
        first = await transport.get("/0", 30.0)
        second = asyncio.create_task(name(transport, "/1"))
        await asyncio.sleep(0)  # it is in flight on the connection of the first
        first.drop()
        assert await second == "/1"
    assert [connection for connection, target in server.requests if target == "/1"][-1] == 2


class Sink(InMemoryProducer):
    """Notes the results that a worker writes."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, Any]] = {}
        self.statuses: dict[str, dict[str, str]] = {}
        self.reasons: dict[str, str] = {}

    @override
    async def write(self, output: Output) -> None:
        assert output.timestamp_ms >= 0
        found = orjson.loads(output.value or b"")
        device = (output.key or b"").decode()
        if output.topic == app.topics.feedback:
            self.results.setdefault(device, {})[found["enrichment"]] = found.get("result")
            self.statuses.setdefault(device, {})[found["enrichment"]] = found["status"]
            self.reasons[device] = found.get("reason")


@asynccontextmanager
async def working(server: Straying, application: Application, log: Log, sink: Sink) -> AsyncIterator[None]:
    """A worker with its real calling side."""
    async with calling(server) as transport:
        calls = assemble(application, {"registry": transport}, Counts(CATALOGUE))
        async with at_work(
            application,
            log,
            caller=calls.caller,
            availability=calls.availability,
            producer=sink,
            counts=Counts(CATALOGUE),
            stop_within=0,
        ):
            yield


async def test_a_worker_gives_no_device_the_answer_of_another() -> None:
    server, log, sink = Straying(), Log([]), Sink()
    async with working(server, app, log, sink):
        for n in range(8):
            device = f"d{n}"
            log.values.append(snapshot(1, f"P{n}", device).encode())
            await until(lambda device=device: len(sink.results.get(device, {})) == 2)  # type: ignore[misc]
            server.send(named(f"/owners/P{n}"))
    names = {device: found["owner"]["owner"]["name"] for device, found in sink.results.items()}
    assert names == {f"d{n}": f"/owners/P{n}" for n in range(8)}


class Own(BaseModel):
    plate: Annotated[str, Echo()]
    name: str


class OwnCar(State):
    plate: Annotated[str | None, Latest()]
    own: Annotated[Own | None, Enriched()]


@enrichment(api="registry")
async def own(api: Api, plate: str) -> Own:
    return await api.get("/own/{plate}", Own, plate=plate)


OWN = Application(
    name="fleet", event=Seen, state=OwnCar, enrichments=(own,), apis={"registry": QUICK}, topics=app.topics
)


async def test_an_echo_finds_the_response_that_comes_before_the_right_one() -> None:
    """HTTP/1.1 cannot: by its rules the first response after a request answers it."""

    def shifted(target: str, before: str | None) -> list[bytes]:
        return [named(before), named(target)] if before else [named(target)]

    server, log, sink = Straying(shifted), Log([]), Sink()
    async with working(server, OWN, log, sink):
        for n in range(4):
            device = f"d{n}"
            log.values.append(orjson.dumps(_car(f"P{n}", device)))
            await until(lambda device=device: device in sink.results)  # type: ignore[misc]
    names = {device: found["own"]["own"]["plate"] for device, found in sink.results.items()}
    assert names == {f"d{n}": f"P{n}" for n in range(4)}
    assert max(connection for connection, _ in server.requests) == 4, "a connection that was shifted is not used again"


async def test_an_api_that_always_answers_another_request_gives_failures_with_the_reason() -> None:
    server, log, sink = Straying(lambda *_: [named("/own/P9")]), Log([]), Sink()
    async with working(server, OWN, log, sink):
        log.values.append(orjson.dumps(_car("P1", "d1")))
        await until(lambda: "d1" in sink.statuses)
    assert sink.statuses["d1"] == {"own": "failure"}
    assert sink.reasons["d1"] == f"{ANOTHER}: Own.plate: it differs from the plate of the call"
    assert [target for _, target in server.requests] == ["/own/P1"] * QUICK.attempts
    assert len({connection for connection, _ in server.requests}) == QUICK.attempts


def _car(plate: str, device: str) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(snapshot(1, plate, device).encode())
    return found | {"state": {"plate": plate, "own": None}}
