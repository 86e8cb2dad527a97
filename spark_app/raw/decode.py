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
from confluent_kafka import KafkaError, KafkaException, Producer

from contracts.model.suite import load_suite
from contracts.records.raw import EncodedEvent, RawDecoder, refused
from contracts.records.record import RecordError
from contracts.types.origin import Origin
from contracts.types.quantize import EPOCH
from contracts.types.raw_record import RawRecord
from services.runtime.kafka.options import create_producer
from spark_app.errors import RawWriteError

POLL_S = 1.0
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
        writer = _writer(self.client)
        decoded = dead = 0
        try:
            for record, stamp in (record for batch in batches for record in _records(self.topic, batch)):
                try:
                    events = decoder.decode(record)
                except RecordError as error:
                    for dead_letters in topics.dead_letters:
                        writer.write(dead_letters, refused(record, error), stamp)
                    dead += 1
                else:
                    for event in events:
                        writer.write(topics.events, event, stamp)
                    decoded += len(events)
            writer.flush()
        except BaseException:
            _writer.cache_clear()  # a producer may have failed for good
            raise
        yield pa.RecordBatch.from_pydict({"decoded": [decoded], "refused": [dead]})


class EventWriter:
    """Writes records to topics, each with the timestamp of its raw record, in milliseconds since 1970."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._error: KafkaError | None = None

    def write(self, topic: str, event: EncodedEvent, stamp: int) -> None:
        """Queue a record, waiting while the queue is full. Raises RawWriteError."""
        while True:
            self._check()
            try:
                self._producer.produce(
                    topic, event.value, event.key, timestamp=stamp, on_delivery=lambda error, _: self._note(error)
                )
            except BufferError:
                self._producer.poll(POLL_S)
            except KafkaException as error:
                raise RawWriteError(topic, error.args[0].str()) from error
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        """Wait until the broker has all records. Raises RawWriteError."""
        while self._producer.flush(POLL_S):
            self._check()
        self._check()

    def _note(self, error: KafkaError | None) -> None:
        self._error = self._error or error

    def _check(self) -> None:
        if self._error is not None:
            raise RawWriteError("of events", self._error.str())


class RawOutputs(NamedTuple):
    """The topics that a decoder writes."""

    events: str
    dead_letters: tuple[str, ...]
    """Those of all applications that read the events: each of them lacks the events of a rejected record."""


@cache
def _decoder(suite: str, name: str, topic: str) -> tuple[RawOutputs, RawDecoder]:
    applications = load_suite(suite).applications
    application = next(one for one in applications if one.name == name)
    events = application.topics.events
    outputs = RawOutputs(events, tuple(one.topics.dead_letters for one in applications if one.topics.events == events))
    return outputs, RawDecoder(application, next(raw for raw in application.raw if raw.topic == topic))


@cache
def _writer(client: tuple[tuple[str, str], ...]) -> EventWriter:
    return EventWriter(create_producer(dict(client), "raw", OPTIONS))


def _records(topic: str, batch: pa.RecordBatch) -> Iterator[tuple[RawRecord, int]]:
    """Yield raw records, each with the timestamp of its events.

    A redriven record has the timestamp of its origin, and its events that of the redrive: if their window is over by
    now, the job refuses them as late.
    """
    columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "micros", "key", "value", "headers"))
    for partition, offset, micros, key, value, headers in zip(*columns, strict=True):
        given = {one["key"]: one["value"] for one in headers or () if one["value"] is not None}
        stamp = micros // 1000
        redriven_from, time = Origin.read("", stamp, given)
        timestamp = EPOCH + timedelta(milliseconds=time)
        yield RawRecord(topic, partition, offset, timestamp, key, value or b"", given, redriven_from or None), stamp
