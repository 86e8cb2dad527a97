"""The ingestion with a real broker."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition

from contracts.errors import DeclarationError
from contracts.model.named_state import QueryOptions
from contracts.wire.partition import partition
from services.query.ingest.ingestion import ReadProgress
from services.query.ingest.kafka_ingestion import KafkaIngestion
from services.query.store import Page, StatePartition
from services.query.store.environment import MIN_MAP_SIZE
from services.query.store.errors import StoreWriteError
from services.runtime.kafka.clients import KafkaClients
from tests.services.query.ingest.ingesting import COMPACTED, WAIT_S, Topic, compacted, ingesting, until, value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contracts.model.named_state import NamedState
    from services.query.store import Change, Update
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka


async def test_records_reach_readers_and_watchers(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    topic.write(("a", value(1)), ("b", value(1)))
    topic.write(("c", value(7)), partition=1)
    async with ingesting(topic, state, tmp_path) as running:
        await running.caught_up()
        assert [running.version(key) for key in "abcd"] == [1, 1, 7, None]
        topic.write(("a", value(2, status="landed")))
        await until(lambda: running.version("a") == 2)
        await until(lambda: running.listener.versions("a") == [1, 2])
        found = running.store.get("a")
        assert found
        assert (found.partition, found.offset, found.value) == (0, 2, value(2, status="landed"))
        assert running.ingestion.progress(running.partition(0)) == ReadProgress(3, 3)
        assert running.ingestion.counts.records == {"flights": 4}


async def test_entries_expire_as_the_watermark_advances_without_records(
    topic: Topic, state: NamedState, tmp_path: Path
) -> None:
    topic.write(("a", value(1)), ("b", value(1)))
    async with ingesting(topic, replace(state, lifetime=timedelta(hours=1)), tmp_path) as running:
        await running.caught_up()
        found = running.store.get("a")
        assert found
        running.store.advance_watermark(found.window_start + 24 * 3_600_000)
        await until(lambda: running.store.key_count() == 0)
        assert running.store.get("a") is None


async def test_misplaced_keys_are_counted(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    keys = [key for key in map(str, range(20)) if partition(key.encode(), 2) == 0]
    topic.write(*((key, value(1)) for key in keys))
    async with ingesting(topic, state, tmp_path) as running:
        await running.caught_up()
        assert running.ingestion.misplaced.counts == {"flights": 0}
        topic.write(*((key, value(1)) for key in keys), partition=1)
        await running.caught_up()
        assert running.ingestion.misplaced.counts["flights"] > 0


async def test_a_replay_is_invisible(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    """Spark's sink publishes versions again after a crash, and their contents may differ."""
    first = [("a", value(version, try_=1)) for version in range(1, 6)]
    async with ingesting(topic, state, tmp_path) as running:
        topic.write(*first)
        await running.caught_up()
        topic.write(*(("a", value(version, try_=2)) for version in range(3, 6)), ("b", value(1)))
        await running.caught_up()
        assert [one.value for one in running.store.versions("a")] == [record for _, record in first]
        topic.write(("a", value(6, try_=2)))
        await until(lambda: 6 in running.listener.versions("a"))
        versions = running.listener.versions("a")
        assert versions == sorted(set(versions), key=versions.index)
        assert versions[-1] == 6


async def test_a_rebuild_is_complete_when_all_records_are_read(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    topic.write(("a", value(1)))
    mapped, file = replace(state, query=QueryOptions(history=1)), tmp_path / "data.mdb"
    async with ingesting(topic, mapped, tmp_path) as running:
        await until(lambda: file.stat().st_size < MIN_MAP_SIZE)
        assert running.version("a") == 1
        topic.write(("a", value(2)))
        await until(lambda: running.version("a") == 2)


async def test_a_restart_resumes_exactly_at_the_position(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    topic.write(("a", value(1)), ("b", value(1)))
    async with ingesting(topic, state, tmp_path) as running:
        await running.caught_up()
    topic.write(("b", value(2)))
    async with ingesting(topic, state, tmp_path) as running:
        assert running.version("a") == 1
        await running.caught_up()
        assert running.version("b") == 2
        assert running.ingestion.counts.records == {"flights": 1}


async def test_undecodable_records_are_skipped(
    topic: Topic, state: NamedState, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic.write(("a", value(1)), ("a", b"garbage"), (b"\xff", value(1)), ("x" * 501, value(1)), ("b", b"{}"))
    topic.write(("a", value(2)))
    async with ingesting(topic, state, tmp_path) as running:
        await running.caught_up()
        assert running.version("a") == 2
        assert running.ingestion.counts.undecodable == {"flights": 4}
        facts = [record.__dict__["facts"] for record in caplog.records if "is skipped" in record.message]
        assert facts[0] == {"topic": topic.name, "partition": 0, "offset": 1, "reason": "is not JSON"}
        assert len(facts) == 4


async def test_a_compacted_topic_with_tombstones_is_read_correctly(
    broker: EmbeddedBroker, topics_prefix: str, state: NamedState, tmp_path: Path
) -> None:
    table = Topic(broker.bootstrap, f"{topics_prefix}table", COMPACTED)
    state = replace(state, topic=table.name, window_start=None, version=None, event_time=None)
    async with ingesting(table, state, tmp_path / "first") as running:
        for number in range(20):
            table.write(("a", b"%d" % number), ("gone", b'{"n":%d}' % number), ("a", b'{"n":%d}' % number))
        table.write(("gone", None))
        await running.caught_up()
        assert running.store.get("gone") is None
        last = running.store.get("a")
        assert last
        assert last.value == b'{"n":19}'
        await until(lambda: None in running.listener.versions("gone"))
        table.write(("gone", b"{}"))
        await until(lambda: running.store.get("gone") is not None)
    await compacted(table, 10)
    async with ingesting(table, state, tmp_path / "second") as running:
        await running.caught_up()
        assert running.store.get("a") == last
        assert running.ingestion.counts.records["flights"] < 62


async def test_a_partition_is_read_again_if_its_position_was_deleted(
    topic: Topic, state: NamedState, tmp_path: Path
) -> None:
    topic.write(("a", value(1)), ("b", value(1)))
    topic.write(("other", value(1)), partition=1)
    async with ingesting(topic, state, tmp_path) as running:
        await running.caught_up()
    topic.write(("c", value(1)), ("b", value(2)))
    await asyncio.to_thread(_delete_before, topic, 3)
    async with ingesting(topic, state, tmp_path) as running:
        await running.caught_up()
        assert [running.version(key) for key in ("a", "b", "c", "other")] == [None, 2, None, 1]
        assert running.listener.restarts == [running.partition(0)]
        assert running.listener.other_topics == [False]
        assert running.listener.at_restart == [(1, None)]
        assert running.ingestion.progress(running.partition(0)) == ReadProgress(4, 4)


async def test_a_topic_that_was_created_again_is_another_one(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    topic.write(("a", value(1)), ("b", value(1)))
    async with ingesting(topic, state, tmp_path, 0) as running:
        await running.caught_up(0)
    await asyncio.to_thread(topic.create_again)
    topic.write(("a", value(2)))
    async with ingesting(topic, state, tmp_path, 0) as running:
        await until(lambda: running.version("a") == 2)
        assert running.version("b") is None
        assert running.listener.other_topics == [True]


async def test_the_end_is_reached_if_the_last_offset_has_no_record(
    broker: EmbeddedBroker, topic: Topic, state: NamedState, tmp_path: Path
) -> None:
    """A transaction ends with a control record, which consumers do not receive."""
    writer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic.name})
    await asyncio.to_thread(writer.init_transactions, WAIT_S)
    writer.begin_transaction()
    writer.produce(topic.name, value(1), "a", 0)
    await asyncio.to_thread(writer.commit_transaction, WAIT_S)
    async with ingesting(topic, state, tmp_path, 0) as running:
        await until(lambda: running.ingestion.progress(running.partition(0)) == ReadProgress(2, 2))
        assert running.version("a") == 1


async def test_only_assigned_partitions_are_read(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    topic.write(("a", value(1)))
    topic.write(("b", value(1)), partition=1)
    async with ingesting(topic, state, tmp_path, 0) as running:
        await running.caught_up(0)
        assert (running.version("a"), running.version("b")) == (1, None)
        assert running.ingestion.progress(running.partition(1)) is None
        running.ingestion.unassign(running.partition(0))
        running.ingestion.assign(running.partition(1))
        await running.caught_up(1)
        await until(lambda: running.ingestion.progress(running.partition(0)) is None)
        topic.write(("a", value(2)))
        topic.write(("b", value(2)), partition=1)
        await running.caught_up(1)
        assert (running.version("a"), running.version("b")) == (1, 2)
        running.ingestion.assign(running.partition(0))
        await running.caught_up(0)
        assert running.version("a") == 2
        assert running.ingestion.counts.records == {"flights": 4}


async def test_readers_never_see_an_older_version(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    """Readers read during a long history, in which many records are repeated and out of order."""
    dice = random.Random(3)
    keys = [f"k{number}" for number in range(20)]
    records = [(key, value(version, minute=minute)) for minute in (0, 90) for version in range(1, 60) for key in keys]
    again = sorted(range(len(records)), key=lambda at: at + dice.random() * 400)
    async with ingesting(topic, replace(state, lifetime=timedelta(hours=3)), tmp_path) as running:
        topic.write(*(records[at] for at in again))
        end_offsets = await running.ingestion.end_offsets([running.partition(0)])
        seen = dict.fromkeys(keys, (0, 0, 0))
        while not running.reached(running.partition(0), end_offsets[running.partition(0)]):
            for key, found in zip(keys, running.store.get_many(keys), strict=True):
                order = found.order if found else (0, 0, 0)
                assert order >= seen[key]
                seen[key] = order
            await asyncio.sleep(0)
        assert {running.version(key) for key in keys} == {59}


async def test_a_store_that_cannot_write_stops_ingestion(topic: Topic, state: NamedState, tmp_path: Path) -> None:
    class Full:
        def position(self, _: int) -> int | None:
            return None

        def mark_caught_up(self, _: Mapping[int, int]) -> None:
            pass

        def caught_up_at(self, _: int) -> int | None:
            return None

        def is_clear_pending(self, _: int) -> bool:
            return False

        def drop_expired(self) -> None:
            pass

        def scan(self, _: object) -> Page:
            return Page((), None)

        def apply(self, _: Sequence[Update], __: Mapping[int, int]) -> list[Change]:
            raise StoreWriteError(tmp_path, "No space left on device", 0)

    topic.write(("a", value(1)))
    kafka = KafkaClients(topic.client)
    ingestion = KafkaIngestion(kafka, kafka.admin("test"), {"flights": state}, {"flights": Full()}, None)  # type: ignore[dict-item,arg-type]
    running = asyncio.create_task(ingestion.run())
    ingestion.assign(StatePartition("flights", 0))
    with pytest.raises(StoreWriteError, match="make room"):
        async with asyncio.timeout(WAIT_S):
            await running


def test_two_states_of_one_topic_are_rejected(topic: Topic, state: NamedState) -> None:
    kafka = KafkaClients(topic.client)
    with pytest.raises(DeclarationError, match="Declare one state of a topic"):
        KafkaIngestion(kafka, kafka.admin("test"), {"flights": state, "again": replace(state, name="again")}, {}, None)  # type: ignore[arg-type]


def _delete_before(topic: Topic, offset: int) -> None:
    (deleted,) = topic.admin.delete_records([TopicPartition(topic.name, 0, offset)]).values()
    deleted.result(WAIT_S)
