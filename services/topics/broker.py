"""Connects to a broker: waits until one answers, or reports the reason; reads the end offsets of a topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from services.runtime.broker_check import ClientErrors
from services.runtime.kafka_clients import create_admin_client
from services.topics.errors import LoginRefusedError, NoBrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

    from services.topics.settings import TopicsSettings

ANSWER_S = 2.0
PAUSE_S = 0.1
LEADERS_S = 30.0
REPORT_EVERY_S = 10.0


def connect(settings: TopicsSettings, report: Callable[[str], None]) -> AdminClient:
    """Return a client of a broker that answers; `report` takes the progress.

    Raises InvalidSettingsError, LoginRefusedError and NoBrokerError.
    """
    errors = ClientErrors()
    admin = create_admin_client(settings.client(), "topics", {"error_cb": errors})
    _await_answer(admin, errors, settings, report)
    return admin


def watermarks(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    """Return the begin and the end of each partition. Raises KafkaException.

    It waits for the leaders of partitions that were added a moment ago.
    """
    deadline = time.monotonic() + LEADERS_S
    while True:
        try:
            numbers = consumer.list_topics(topic, ANSWER_S).topics[topic].partitions
            return {one: consumer.get_watermark_offsets(TopicPartition(topic, one), ANSWER_S) for one in numbers}
        except KafkaException:
            if time.monotonic() >= deadline:
                raise
        time.sleep(PAUSE_S)


def _await_answer(
    admin: AdminClient, errors: ClientErrors, settings: TopicsSettings, report: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + settings.patience.total_seconds()
    next_report = time.monotonic()
    while True:
        try:
            admin.list_topics(timeout=ANSWER_S)
        except KafkaException as error:
            admin.poll(0)
            why = (errors.last or error.args[0]).str()
        else:
            return
        if errors.refused:
            raise LoginRefusedError(settings.kafka, why)
        now = time.monotonic()
        if now >= deadline:
            raise NoBrokerError(settings.kafka, why, settings.patience)
        if now >= next_report:
            report(f"waits for a broker at {settings.kafka}, for {deadline - now:.0f} s more at the most ({why})")
            next_report = now + REPORT_EVERY_S
