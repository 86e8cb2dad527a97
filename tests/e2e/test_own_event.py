"""A producer reads the state that has merged its event: by the real job and the query service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from services.client import Client, Found, NotArrivedError
from services.runtime.kafka.options import create_producer
from tests.services.query.fleet import START, application
from tests.services.query.running import Fleet
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import Message
    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

CAR = "car/1"


class Sender:
    """Sends events of cars."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = create_producer({"bootstrap.servers": bootstrap}, "test")

    def send(self, car: str, event_id: str, plate: str) -> tuple[int, int]:
        """Send one event. Return its partition and offset, as the broker reports them."""
        times = {"first_seen": START, "ts": START}
        event = orjson.dumps({"device_id": car, "event_id": event_id, "plate": plate} | times)
        stored: list[Message] = []
        time = round(START.timestamp() * 1000)
        self._producer.produce(
            self._topic, event, car, timestamp=time, on_delivery=lambda _, message: stored.append(message)
        )
        assert self._producer.flush(PATIENCE_S) == 0
        partition, offset = stored[0].partition(), stored[0].offset()
        assert partition is not None
        assert offset is not None
        return partition, offset


async def test_a_producer_reads_the_state_that_has_merged_its_event(
    spark: SparkSession, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    fleet = Fleet(broker.bootstrap, topics_prefix, tmp_path)
    sender = Sender(broker.bootstrap, fleet.topics.events)
    job = HostedJob(spark, broker.bootstrap, tmp_path, application(topics_prefix)).start()
    try:
        with fleet.running(STATELOOP_MAX_WAIT=f"PT{PATIENCE_S:.0f}S"):
            async with Client(f"http://127.0.0.1:{fleet.port}") as states:
                position = 0, 0
                for number in range(3):
                    for other in range(8):
                        sender.send(f"other/{other}", str(number), "x")
                    position = sender.send(CAR, str(number), f"P{number}")
                    answer = await states.get("cars", CAR, min_offset=position, wait=PATIENCE_S)
                    assert isinstance(answer, Found)
                    assert (answer.version, answer.value["event_offset"]) == (number + 1, position[1])
                duplicate = sender.send(CAR, "2", "P2")
                with pytest.raises(NotArrivedError) as behind:
                    await states.get("cars", CAR, min_offset=duplicate, wait=1.0)
                assert behind.value.latest_offset == position[1], "the job drops the duplicate"
    finally:
        job.stop()
