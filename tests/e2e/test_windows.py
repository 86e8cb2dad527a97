"""Two windows of one device, and a late answer for the older one that is written last, over compacted topics."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

import orjson
import pytest

from contracts.wire import Feedback
from contracts.wire.partition import partition
from contracts.wire.window_key import derived_key, window_key
from tests.e2e.loop import PARTITIONS, Loop, ask
from tests.e2e.times import newer, now, older
from tests.services.enrichment.registry import Registry
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import until

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

DEVICE, OLD_PLATE, NEW_PLATE = "m1", "OLD", "NEW"
HOME = partition(DEVICE.encode(), PARTITIONS)


@pytest.fixture
def loop(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Loop:
    """Give topics that the broker compacts as soon as it can."""
    made = Loop(broker, topics_prefix, tmp_path, "tests.e2e.windows:app")
    for name in ("snapshots", "sites"):
        made.compact(name)
    return made


def event(first_seen: datetime, plate: str) -> bytes:
    """An event of the device."""
    fields = {"device_id": DEVICE, "event_id": plate, "first_seen": first_seen, "ts": first_seen, "plate": plate}
    return orjson.dumps(fields)


def late_answer() -> bytes:
    """The answer for the older window, which no worker gave: so no request of it is known."""
    return Feedback(
        device_id=DEVICE,
        first_seen=older(),
        enrichment="owner",
        version=1,
        status="absence",
        ts=now(),
        fingerprint="late",
        reason="404",
    ).encode()


async def test_nothing_of_the_newer_window_is_lost(spark: SparkSession, loop: Loop) -> None:
    job = HostedJob(spark, loop.bootstrap, loop.folder, "tests.e2e.windows:app", loop.environment).start()
    try:
        for window, plate in ((older(), OLD_PLATE), (newer(), NEW_PLATE)):
            loop.send("events", DEVICE, event(window, plate))
        until(lambda: job.ended() or len(loop.records("snapshots")) == 2, "a snapshot of each window")
        loop.send("feedback", DEVICE, late_answer())
        until(lambda: job.ended() or len(loop.records("snapshots")) == 3, "the late answer's snapshot")
    finally:
        job.stop()
    left = loop.compacted("snapshots", 2)
    assert {message.key() for message in left} == {window_key(DEVICE, older()), window_key(DEVICE, newer())}
    assert {message.partition() for message in left} == {HOME}
    async with Registry().serving() as registry:
        await asyncio.to_thread(readers, loop, registry.url)
        assert f"/owners/{NEW_PLATE}" in registry.calls, "a worker that starts now requests for the newer window"


def readers(loop: Loop, registry: str) -> None:
    """Start all readers with nothing of their own, and compare what they have."""
    with ExitStack() as running:
        running.enter_context(loop.service("services.derive"))
        sites = until(lambda: len(messages := loop.records("sites")) >= 2 and messages, "derived records")
        expected = {derived_key("site", DEVICE, start) for start in (older(), newer())}
        assert {message.key() for message in sites} == expected
        loop.compacted("sites", 2)
        port = str(free_port_pair())
        data = str(loop.folder / "data")
        running.enter_context(loop.service("services.query", http_port=port, query_data=data))
        state = until(lambda: ask(port, f"machines/{DEVICE}"), "the device's state")
        assert state["value"]["state"]["plate"] == NEW_PLATE
        assert until(lambda: ask(port, "sites/site"), "the derived state")["value"]["value"]["plate"] == NEW_PLATE
        running.enter_context(loop.worker(registry))
        until(lambda: fed(loop, newer()), "the newer window's answer")


def fed(loop: Loop, first_seen: datetime) -> bool:
    """Return whether there is an answer for the window."""
    answers = [Feedback.model_validate_json(message.value() or b"") for message in loop.records("feedback")]
    return any(answer.first_seen == first_seen and answer.status == "result" for answer in answers)
