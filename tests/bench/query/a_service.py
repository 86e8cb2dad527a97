"""A small service that answers for keys as the query service does, or lies: what the benchmark is tested with."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING

from aiohttp import web
from confluent_kafka import Consumer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

BOOT, PORT, SPOIL = sys.argv[1], int(sys.argv[2]), os.environ["SPOIL"]
VERSION = re.compile(rb'"version":(\d+)')
PROBED = "k000000000100"
"""Versions below this one are awaited, so that a wrong answer would look like no answer."""
KEYS: dict[str, bytes] = {}


async def follow(_: web.Application) -> None:
    consumer = Consumer({"bootstrap.servers": BOOT, "group.id": "a", "enable.auto.commit": False})
    consumer.assign([TopicPartition("snapshots", number, 0) for number in range(2)])
    following.append(asyncio.create_task(_follow(consumer)))


async def _follow(consumer: Consumer) -> None:
    while True:
        for message in await asyncio.to_thread(consumer.consume, 1000, 0.01):
            KEYS[(message.key() or b"").decode()] = message.value() or b""


def answer(key: str) -> bytes:
    value = KEYS[key]
    if SPOIL == "lies" and key.endswith("7") and key > PROBED:
        value = VERSION.sub(b'"version":1', value).replace(b":2", b":1")
    version = VERSION.search(value)
    return b'{"state":"keys","key":"%b","version":%b,"value":%b}' % (
        key.encode(),
        version[1] if version else b"",
        value,
    )


async def get(request: web.Request) -> web.Response:
    key = request.match_info["key"]
    return web.Response(body=answer(key)) if key in KEYS else web.Response(status=503)


async def batch(request: web.Request) -> web.Response:
    body: Mapping[str, list[str]] = await request.json()
    return web.Response(body=b'{"answers":[%b]}' % b",".join(answer(key) for key in body["keys"]))


following: list[asyncio.Task[None]] = []
app = web.Application()
app.add_routes(
    [
        web.get("/v1/states/keys/{key}", get),
        web.post("/v1/states/keys:batchGet", batch),
    ]
)
app.on_startup.append(follow)
web.run_app(app, host="127.0.0.1", port=PORT, print=lambda *_: None)
