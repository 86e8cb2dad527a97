"""The fold of the records that a test sends to the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import HEARTBEAT_KEY
from services.runtime.kafka.options import record_of
from tests import everything

if TYPE_CHECKING:
    from confluent_kafka import Message

    from contracts import Application
    from contracts.records.record import Record
    from tests.spark_app.running import Topics


def is_heartbeat(message: Message) -> bool:
    """Return whether the job wrote a record to move its watermark."""
    return (message.key() or b"").startswith(HEARTBEAT_KEY)


def folded(
    topics: Topics, events: list[Record], answers: list[Record], application: Application = everything.app
) -> tuple[Fold, int]:
    """Send records. Return the fold of them, with the offsets that they have, and the number of new ones."""
    topics.send(topics.names.events, events)
    topics.send(topics.names.feedback, answers)
    return stored(topics, len(events), len(answers), application)


def stored(topics: Topics, events: int, answers: int, application: Application = everything.app) -> tuple[Fold, int]:
    """Return the fold of `events` and `answers` records of the topics, and the number of new ones."""
    decoder, fold = Decoder(application), Fold(application)
    new = 0
    for topic, count, decode in (
        (topics.names.events, events, decoder.event),
        (topics.names.feedback, answers, lambda record: (decoder.feedback(record),)),
    ):
        records = (record_of(message) for message in topics.read(topic, count) if not is_heartbeat(message))
        new += sum(fold.add(delta) is not None for record in records for delta in decode(record))
    return fold, new
