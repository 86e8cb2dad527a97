"""The progress of a job, on a real broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from services.runtime import job_progress
from services.runtime.job_progress import JobProgress, Published
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.values import GroupOffset, Partition
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

AT = datetime(2026, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)


def snapshots(broker: EmbeddedBroker, prefix: str, partitions: int) -> str:
    """Create a topic of snapshots; return its name."""
    topic, admin = f"{prefix}snapshots", AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(DEADLINE_S)
    wait_until(lambda: topic in admin.list_topics(timeout=DEADLINE_S).topics, f"{topic} is listed", DEADLINE_S)
    return topic


@pytest.mark.kafka
def test_a_reader_finds_the_last_progress_of_its_partitions(broker: EmbeddedBroker, topics_prefix: str) -> None:
    client, topic = {"bootstrap.servers": broker.bootstrap}, snapshots(broker, topics_prefix, partitions=3)
    job, reader = (JobProgress(KafkaAdmin(client, "progress"), topic) for _ in range(2))
    assert reader.read([0, 1]) == {}
    job.record(AT, 1, {0: 4, 1: 5})
    job.record(AT.astimezone(timezone(timedelta(hours=2))) + timedelta(seconds=1), 2, {0: 0, 1: 7})
    later = AT + timedelta(seconds=1)
    expected = {0: Published(0, later, 2), 1: Published(7, later, 2)}  # as of one job: a new one reads the former
    wait_until(lambda: reader.read([0, 1, 2]) == expected, "the last progress", DEADLINE_S)
    other = KafkaAdmin(client, "other")
    assert other.commit(job_progress.GROUP, {Partition(topic, 1): GroupOffset(9, "no progress")})
    assert reader.read([0, 1]) == {0: Published(0, later, 2)}
    for closed in (other, job, reader):
        closed.close()


@pytest.mark.kafka
def test_the_progress_of_a_new_epoch_names_the_latest_one_before(broker: EmbeddedBroker, topics_prefix: str) -> None:
    client, topic = {"bootstrap.servers": broker.bootstrap}, snapshots(broker, topics_prefix, partitions=2)
    latest = AT + timedelta(hours=1)
    runs = [(AT, 1, 4), (latest, 1, 5), (AT, 2, 6), (AT, 2, 7), (AT, 3, 8)]
    formers = [None, None, Published(5, latest, 1), Published(5, latest, 1), Published(5, latest, 1)]
    for (time, epoch, offset), former in zip(runs, formers, strict=True):
        job = JobProgress(KafkaAdmin(client, "progress"), topic)  # each run of the job is a new process
        job.record(time, epoch, {0: offset})
        expected = {0: Published(offset, time, epoch, former)}
        wait_until(lambda: job.read([0, 1]) == expected, f"{expected}", DEADLINE_S)  # noqa: B023
        job.close()


def test_a_broker_that_is_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_progress, "ANSWER_S", 0.1)
    away = JobProgress(KafkaAdmin({"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, "progress"), "snapshots")
    assert away.read([0]) is None
    away.close()
