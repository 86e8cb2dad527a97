"""Watches all blobs over a WebSocket, and notes when each chunk was pushed first."""

import asyncio
import gc
import time
from multiprocessing.synchronize import Event as Flag
from typing import Any, NamedTuple

import aiohttp
import orjson

from bench.vitals.application import blobs
from bench.vitals.chunks import SentChunk, chunks_of, pulse_of

SUBSCRIBE = {"type": "subscribe", "id": "all", "state": blobs.name, "prefix": "", "window": "all"}


class PushedChunk(NamedTuple):
    """The time of a chunk's first push, in seconds of the epoch, and whether its samples were right."""

    at: float
    is_right: bool


def watch(port: int, stop: Flag) -> dict[SentChunk, PushedChunk]:
    """Watch until the flag is set; return the first push of each chunk."""
    gc.disable()  # a collection would be a pause of the receiver, and count as the service's
    return asyncio.run(_watch(port, stop))


async def _watch(port: int, stop: Flag) -> dict[SentChunk, PushedChunk]:
    found = dict[SentChunk, PushedChunk]()
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{port}/v1/watch", max_msg_size=0) as socket,
    ):
        await socket.send_str(orjson.dumps(SUBSCRIBE).decode())
        receiving = asyncio.create_task(_receive(socket, found))
        await asyncio.to_thread(stop.wait)
        receiving.cancel()
    return found


async def _receive(socket: aiohttp.ClientWebSocketResponse, found: dict[SentChunk, PushedChunk]) -> None:
    async for message in socket:
        note(orjson.loads(message.data), time.time(), found)


def note(message: dict[str, Any], now: float, found: dict[SentChunk, PushedChunk]) -> None:
    """Add the chunks that a message has and none before it had."""
    if message["type"] != "state":
        return
    answer = message["answer"]
    pulse = pulse_of(answer)
    for chunk in chunks_of(answer["key"], answer["window_start"], pulse):
        if chunk not in found:
            found[chunk] = PushedChunk(now, chunk.is_in(pulse))
