"""Decodes raw records and writes their events, in Spark's Python processes.

The events are written here, and not by Spark's sink, because they keep the timestamps of their raw records: a record
that waited for the decoder is not late. Spark's sink cannot set timestamps. A batch that fails or is killed is
decoded again, and gives events with the same ids.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import NamedTuple

import pyarrow as pa

from contracts.model.suite import load_suite
from contracts.records.raw import EncodedEvent, RawDecoder, refused
from contracts.records.record import RecordError
from contracts.types.origin import Origin
from contracts.types.quantize import EPOCH
from contracts.types.raw_record import RawRecord
from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.blocking import BlockingKafkaProducer
from services.runtime.kafka.interfaces import BlockingProducer
from services.runtime.kafka.values import Output
from spark_app.errors import RawWriteError

OPTIONS = {"linger.ms": 5, "compression.type": "lz4"}


@dataclass(frozen=True)
class RawTask:
    """Decodes the records of one raw topic in one partition of a batch. Spark sends it to its Python processes."""

    suite: str
    """The suite or application, as package.module:name."""
    application: str
    topic: str
    client: tuple[tuple[str, str], ...]
    """The options of the Kafka client."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the events and dead letters of all records; then yield their numbers."""
        topics, decoder = _decoder(self.suite, self.application, self.topic)
        producer = _producer(self.client)
        decoded = dead = 0
        try:
            for record, stamp in (record for batch in batches for record in _records(self.topic, batch)):
                try:
                    events = decoder.decode(record)
                except RecordError as error:
                    for dead_letters in topics.dead_letters:
                        producer.enqueue(_output(dead_letters, refused(record, error), stamp))
                    dead += 1
                else:
                    for event in events:
                        producer.enqueue(_output(topics.events, event, stamp))
                    decoded += len(events)
            producer.flush()
        except BaseException as error:
            _producer.cache_clear()  # a producer may have failed for good
            if isinstance(error, DeliveryFailedError):
                raise RawWriteError(error.topic, error.detail) from error
            raise
        yield pa.RecordBatch.from_pydict({"decoded": [decoded], "refused": [dead]})


class RawOutputs(NamedTuple):
    """The topics that a decoder writes."""

    events: str
    dead_letters: tuple[str, ...]
    """The topics of all applications that read the events: each of them lacks the events of a rejected record."""


@cache
def _decoder(suite: str, name: str, topic: str) -> tuple[RawOutputs, RawDecoder]:
    applications = load_suite(suite).applications
    application = next(application for application in applications if application.name == name)
    events = application.topics.events
    outputs = RawOutputs(
        events, tuple(reader.topics.dead_letters for reader in applications if reader.topics.events == events)
    )
    return outputs, RawDecoder(application, next(raw for raw in application.raw if raw.topic == topic))


@cache
def _producer(client: tuple[tuple[str, str], ...]) -> BlockingProducer:
    return BlockingKafkaProducer(dict(client), "raw", options=OPTIONS)


def _output(topic: str, event: EncodedEvent, stamp: int) -> Output:
    return Output(topic, event.key, event.value, timestamp_ms=stamp)


def _records(topic: str, batch: pa.RecordBatch) -> Iterator[tuple[RawRecord, int]]:
    """Yield raw records, each with the timestamp of its events.

    A redriven record has the timestamp of its origin, and its events have the timestamp of the redrive: if their window
    is over by now, the job refuses them as late.
    """
    columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "micros", "key", "value", "headers"))
    for partition, offset, micros, key, value, headers in zip(*columns, strict=True):
        header_values = {header["key"]: header["value"] for header in headers or () if header["value"] is not None}
        stamp = micros // 1000
        redriven_from, time = Origin.read("", stamp, header_values)
        timestamp = EPOCH + timedelta(milliseconds=time)
        yield (
            RawRecord(topic, partition, offset, timestamp, key, value or b"", header_values, redriven_from or None),
            stamp,
        )
