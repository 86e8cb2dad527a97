"""A job of a few lines: decodes the chunks of a format until killed. It can spoil one sample.

Arguments: the broker, the name of the format, and `right` or `wrong`.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.raw.application import CHUNKS, FORMATS
from contracts import RawRecord
from contracts.records.raw import RawDecoder
from contracts.types.quantize import EPOCH

SPOILT = 10
"""The number of the chunk that is decoded wrong."""


def main(boot: str, name: str, spoil: str) -> None:
    application = FORMATS[name].application
    decoder, producer = RawDecoder(application, application.raw[0]), Producer({"bootstrap.servers": boot})
    consumer = Consumer({"bootstrap.servers": boot, "group.id": "a decoder", "enable.auto.commit": False})
    consumer.assign([TopicPartition(CHUNKS, partition, 0) for partition in (0, 1)])
    decoded = 0
    while True:
        for message in consumer.consume(50, 0.2):
            decoded += 1
            place = message.partition() or 0, message.offset() or 0
            (event,) = decoder.decode(RawRecord(CHUNKS, *place, EPOCH, message.key(), message.value() or b""))
            value = event.value.replace(b":[", b":[12345,") if spoil == "wrong" and decoded == SPOILT else event.value
            producer.produce(application.topics.events, value, event.key)
        producer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
