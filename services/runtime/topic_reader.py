"""Reads a topic whole, and follows it: reference tables, and other compacted topics that a process holds in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from contracts.records.record import Record
from services.runtime.kafka.options import create_consumer, log_error, record_of

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

Partitions = list[tuple[str, int]]

OPTIONS = {"enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50}
BATCH = 1_000
POLL_S = 0.1
LISTED_S = 5.0
LAST = 1 << 63
"""A number greater than every offset."""


class TopicReader:
    """A consumer without a group. While the broker is away it waits, until it is to stop."""

    def __init__(self, client: Mapping[str, str], name: str, log: logging.Logger | None = None) -> None:
        self._consumer = create_consumer(client, name, f"stateloop-{name}", OPTIONS, log)
        self._name = name
        self._log = log

    def partitions(self, topics: Sequence[str]) -> Partitions:
        """Return the partitions of these topics; none of a topic that is not there. Raises KafkaException."""
        listed = self._consumer.list_topics(timeout=LISTED_S).topics
        return [(topic, number) for topic in topics if topic in listed for number in listed[topic].partitions]

    def read_to_end(
        self,
        partitions: Partitions,
        is_stopping: Callable[[], bool] = lambda: False,
        end_offsets: Mapping[tuple[str, int], int] | None = None,
        since: datetime | None = None,
    ) -> Iterator[list[Record]]:
        """Yield the records of these partitions from their beginning to their end, then go on with `poll`.

        `end_offsets` has earlier ends of partitions. With `since`, the first record of each is the first one of this
        time or a later one. Raises KafkaException for a fatal error.
        """
        end_offsets = end_offsets or {}
        self._consumer.assign(self._starts(partitions, since))
        left = {one for one in partitions if end_offsets.get(one) != 0}
        while left and not is_stopping():
            records, ended = self._batch(POLL_S)
            yield [one for one in records if one.offset < end_offsets.get((one.topic, one.partition), one.offset + 1)]
            left -= ended
            left -= {
                partition
                for one in records
                if end_offsets.get(partition := (one.topic, one.partition), LAST) <= one.offset + 1
            }

    def poll(self) -> list[Record]:
        """Return the records that have come since, without waiting. Raises KafkaException for a fatal error."""
        return self._batch(0)[0]

    def stop(self) -> None:
        """Read no further: the client stores nothing more."""
        self._consumer.unassign()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _starts(self, partitions: Partitions, since: datetime | None) -> list[TopicPartition]:
        if since is None:
            return [TopicPartition(*one, OFFSET_BEGINNING) for one in partitions]
        milliseconds = int(since.timestamp() * 1000)
        return self._consumer.offsets_for_times([TopicPartition(*one, milliseconds) for one in partitions], LISTED_S)

    def _batch(self, wait_s: float) -> tuple[list[Record], set[tuple[str, int]]]:
        """The next records, and the partitions whose end was reached."""
        records, ended = list[Record](), set[tuple[str, int]]()
        first = self._consumer.poll(wait_s)
        for message in () if first is None else (first, *self._consumer.consume(BATCH, 0)):
            error = message.error()
            if error is None:
                records.append(record_of(message))
            elif error.name() == "_PARTITION_EOF":
                ended.add((message.topic() or "", message.partition() or 0))
            else:
                self._check(error)
        return records, ended

    def _check(self, error: KafkaError) -> None:
        """Log an error that passes by itself. Raises KafkaException for any other."""
        if error.fatal() or "AUTHORIZATION" in error.name():
            raise KafkaException(error)
        if self._log is not None:
            log_error(self._log, self._name, error)
        time.sleep(POLL_S)
