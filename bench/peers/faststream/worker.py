"""An enrichment worker with FastStream: a subscriber that calls with aiohttp and publishes.

It is concurrent by `max_workers`, as documented: so offsets are committed before the work is done, which ours
never does.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import aiohttp
import uvloop
from faststream import FastStream
from faststream.kafka import KafkaBroker
from pydantic import AwareDatetime, BaseModel

IN_FLIGHT = int(os.environ["IN_FLIGHT"])
TIMEOUT = aiohttp.ClientTimeout(total=10)


class PlaceResult(BaseModel):
    """The API's answer about a cell."""

    number: int
    name: str
    district: str
    limit_kmh: float


class PeerSnapshot(BaseModel):
    """The part of a snapshot that it needs."""

    device_id: str
    first_seen: AwareDatetime
    version: int
    state: dict[str, Any]
    enrichments: dict[str, Any]


class PeerAnswer(BaseModel):
    """One result."""

    device_id: str
    first_seen: AwareDatetime
    enrichment: Literal["place"] = "place"
    version: int
    status: Literal["result"] = "result"
    ts: AwareDatetime
    result: dict[str, PlaceResult]


broker = KafkaBroker(os.environ["BOOT"], acks="all", enable_idempotence=True, logger=None)
feedback = broker.publisher("feedback")
sessions: list[aiohttp.ClientSession] = []


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    """One session for all calls."""
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(os.environ["API"], connector=connector, timeout=TIMEOUT) as session:
        sessions.append(session)
        yield


app = FastStream(broker, lifespan=lifespan, logger=None)


@broker.subscriber(
    "snapshots", group_id=os.environ["GROUP"], auto_offset_reset="earliest", max_workers=IN_FLIGHT, max_records=500
)
async def enrich(snapshot: PeerSnapshot) -> None:
    """Ask for the place of a vehicle that has none, and publish it."""
    if "place" in snapshot.enrichments:
        return
    async with sessions[0].get(f"/places/{snapshot.state['cell']}") as response:
        response.raise_for_status()
        place = PlaceResult.model_validate_json(await response.read())
    answer = PeerAnswer(
        device_id=snapshot.device_id,
        first_seen=snapshot.first_seen,
        version=snapshot.version,
        ts=datetime.now(UTC),
        result={"place": place},
    )
    await feedback.publish(answer, key=snapshot.device_id.encode())


if __name__ == "__main__":
    uvloop.run(app.run())
