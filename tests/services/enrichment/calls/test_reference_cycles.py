"""A call leaves no reference cycles, whether it fails or not."""

from __future__ import annotations

import asyncio
import gc
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientRequest, ClientResponse

from contracts import RetryableCallError
from contracts.errors import CallError
from services.enrichment.calls.response import Response
from tests.services.enrichment.calls.calling import transport
from tests.services.enrichment.calls.scripted import Desk, Scripted, good
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.fleet import QUICK
from tests.services.enrichment.in_memory import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Left = Callable[..., int]


KINDS = (ClientResponse, ClientRequest, Response, CallError)


@pytest.fixture
def left() -> Iterator[Left]:
    """Count the objects of these kinds that were made since and still exist. Other tests may keep some of theirs."""
    gc.collect()
    gc.disable()
    others = [one for one in gc.get_objects() if isinstance(one, KINDS)]
    known = {id(one) for one in others}
    yield lambda *kinds: sum(isinstance(one, kinds) and id(one) not in known for one in gc.get_objects())
    gc.enable()


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>"), (200, b'{"name": 1}'), (503, b"down"), (403, b"no"), (404, b"")],
    ids=["rubbish", "misfit", "down", "refused", "absent"],
)
def test_no_response_is_part_of_a_reference_cycle(status: int, body: bytes, left: Left) -> None:
    async def scenario() -> None:
        desk = Desk(Scripted(lambda _: Response(status, body)), QUICK)
        assert (await desk.answer("P1")).status in ("failure", "absence")

    virtually(scenario())
    assert left(Response) == 0


def test_no_response_is_referenced_after_a_retried_call(left: Left) -> None:
    tried: list[str] = []

    def storm(target: str) -> Response:
        tried.append(target)
        return Response(200, b"<html>") if len(tried) < 3 else good(target)

    async def scenario() -> None:
        assert (await Desk(Scripted(storm), QUICK).answer("P1")).status == "result"

    virtually(scenario())
    assert left(Response) == 0


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "segments",
    [
        [HEAD + b"{}"],
        [HEAD, b"{}"],
        [b""],
        [HEAD],
        [HEAD[:20]],
        [CHUNKED, b"x\r\n"],
        [b"SSH-2.0\r\n\r\n"],
        [HEAD + b"{}" + HEAD],
    ],
    ids=["result", "segments", "ended", "no body", "part of a head", "chunk", "rubbish", "two"],
)
async def test_no_object_of_a_call_is_part_of_a_reference_cycle(segments: list[bytes], left: Left) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            for segment in segments:
                writer.write(segment)
                await asyncio.sleep(0.02)  # so that it is a segment of its own

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as listening,
        transport(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}") as client,
    ):
        for _ in range(3):
            with suppress(RetryableCallError):
                await client.get("/x", 0.5)
        await until(lambda: not left(*KINDS))
