"""Keys that were removed while no instance was reading, and whose tombstones the topic has lost since."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from services.query.ingest import tombstones
from services.query.ingest.tombstones import DAY_MS, TombstoneRetention, read_tombstone_retention
from services.query.store import StatePartition
from services.query.store.store import Store
from services.runtime.kafka.admin import KafkaAdmin
from tests.services.query.ingest.ingesting import COMPACTED, Running, Topic, compacted, ingesting, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contracts.model.named_state import NamedState
    from tests.services.tools.broker.embedded import EmbeddedBroker

HOUR = 3_600_000


class Clock:
    """A clock in milliseconds that a test moves."""

    def __init__(self) -> None:
        self.time = 1_000 * DAY_MS

    def __call__(self) -> int:
        return self.time


async def wait_until_recorded(running: Running, clock: Clock) -> None:
    """Wait until the store has caught up and recorded the present time."""
    await running.caught_up()
    await until(lambda: running.store.caught_up_at(0) == clock.time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def table(broker: EmbeddedBroker, topics_prefix: str) -> Topic:
    return Topic(broker.bootstrap, f"{topics_prefix}table", COMPACTED)


@pytest.fixture
def state(table: Topic, state: NamedState) -> NamedState:
    return replace(state, topic=table.name, window_start=None, version=None, event_time=None)


@pytest.mark.kafka
async def test_a_store_unused_for_longer_than_the_retention_returns_no_removed_key(
    table: Topic, state: NamedState, tmp_path: Path, clock: Clock
) -> None:
    retention = TombstoneRetention({"flights": DAY_MS}, clock)
    table.write(("gone", b"{}"), ("a", b"{}"))
    async with ingesting(table, state, tmp_path, retention=retention) as running:
        await wait_until_recorded(running, clock)
    clock.time += DAY_MS + 1
    table.write(("gone", None), ("b", b"{}"))
    await compacted(table, 2)
    async with ingesting(table, state, tmp_path, retention=retention) as running:
        await running.caught_up(0)
        assert [running.store.get(key) is not None for key in ("gone", "a", "b")] == [False, True, True]
        assert running.listener.restarts == [running.partition(0)]


@pytest.mark.kafka
async def test_a_store_unused_within_the_retention_resumes_at_its_position(
    table: Topic, state: NamedState, tmp_path: Path, clock: Clock
) -> None:
    table.write(("a", b"{}"), ("c", b"{}"))
    retention = TombstoneRetention({"flights": DAY_MS}, clock)
    async with ingesting(table, state, tmp_path, retention=retention) as running:
        await wait_until_recorded(running, clock)
    clock.time += DAY_MS
    async with ingesting(table, state, tmp_path, retention=retention) as running:
        await until(lambda: running.store.caught_up_at(0) == clock.time)
    clock.time += DAY_MS
    table.write(("b", b"{}"))
    async with ingesting(table, state, tmp_path, retention=retention) as running:
        await running.caught_up()
        assert running.listener.restarts == []
        assert running.ingestion.counts.records == {"flights": 1}


@pytest.mark.kafka
async def test_a_partition_unassigned_for_longer_than_the_retention_is_read_again(
    table: Topic, state: NamedState, tmp_path: Path, clock: Clock
) -> None:
    table.write(("gone", b"{}"), ("a", b"{}"))
    async with ingesting(table, state, tmp_path, retention=TombstoneRetention({"flights": DAY_MS}, clock)) as running:
        await wait_until_recorded(running, clock)
        running.ingestion.unassign(running.partition(0))
        await until(lambda: running.ingestion.progress(running.partition(0)) is None)
        table.write(("gone", None))
        await compacted(table, 1)
        clock.time += DAY_MS + 1
        running.ingestion.assign(running.partition(0))
        await until(lambda: running.listener.restarts == [running.partition(0)])
        await running.caught_up()
        assert [running.store.get(key) is not None for key in ("gone", "a")] == [False, True]
        await until(lambda: running.store.caught_up_at(0) == clock.time)


@pytest.mark.kafka
async def test_a_clock_that_jumps_ahead_does_not_restart_partitions(
    table: Topic, state: NamedState, tmp_path: Path, clock: Clock
) -> None:
    """Otherwise all instances would read everything at once."""
    retention = TombstoneRetention({"flights": DAY_MS}, clock)
    table.write(("a", b"{}"))
    async with ingesting(table, state, tmp_path, retention=retention) as running:
        await wait_until_recorded(running, clock)
        clock.time += 2 * DAY_MS
        table.write(("b", b"{}"))
        await until(lambda: running.store.get("b") is not None)
    clock.time += 2 * DAY_MS
    table.write(("c", b"{}"))
    async with ingesting(table, state, tmp_path, retention=retention) as running:
        await wait_until_recorded(running, clock)
        assert running.listener.restarts == []
        assert running.ingestion.counts.records == {"flights": 1}


@pytest.mark.kafka
async def test_a_gap_at_the_end_restarts_the_partition_too(
    table: Topic, state: NamedState, tmp_path: Path, clock: Clock
) -> None:
    """A transaction ends with an offset without a record, as if compaction had removed the last one."""
    retention = TombstoneRetention({"flights": DAY_MS}, clock)
    producer = Producer({**table.client, "transactional.id": table.name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(table.name, b"{}", "a", 0)
    producer.commit_transaction()
    for restarts in ([], [StatePartition("flights", 0)]):
        async with ingesting(table, state, tmp_path, retention=retention) as running:
            await wait_until_recorded(running, clock)
            assert running.listener.restarts == restarts
            assert running.store.get("a")
        clock.time += DAY_MS + 1


@pytest.mark.kafka
async def test_the_first_read_may_take_longer_than_the_retention(
    table: Topic, state: NamedState, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch takes two days here: without the exception it would restart forever."""
    table.write(*((f"k{number}", b"{}") for number in range(300)))
    apply = Store.apply

    def slow(store: Store, *arguments: object) -> object:
        clock.time += 2 * DAY_MS
        return apply(store, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "apply", slow)
    async with ingesting(
        table, state, tmp_path, 0, retention=TombstoneRetention({"flights": DAY_MS}, clock)
    ) as running:
        await running.caught_up(0)
        assert running.listener.restarts == []
        assert running.store.key_count() == 300


def test_clearing_a_partition_deletes_its_recorded_time(tmp_path: Path, state: NamedState) -> None:
    store = Store(tmp_path, state, "boot")
    store.mark_caught_up({0: 5, 1: 7})
    store.close()
    store = Store(tmp_path, state, "boot")
    assert [store.caught_up_at(one) for one in (0, 1, 2)] == [5, 7, None]
    while not store.clear_partition(0):
        assert store.caught_up_at(0) is None
    store.close()
    store = Store(tmp_path, state, "boot")
    assert [store.caught_up_at(one) for one in (0, 1)] == [None, 7]
    store.close()


def test_the_retention_is_exceeded_after_its_time(clock: Clock) -> None:
    retention = TombstoneRetention({"flights": HOUR}, clock)
    assert not retention.is_exceeded("other", None)
    assert retention.is_exceeded("flights", None)
    assert not retention.is_exceeded("flights", clock.time - HOUR)
    assert retention.is_exceeded("flights", clock.time - HOUR - 1)
    assert not retention.is_exceeded("flights", clock.time + HOUR), "the clock was set back"


@pytest.mark.parametrize(("least", "every"), [(DAY_MS, 60.0), (80_000, 10.0), (0, 1.0)])
def test_the_check_interval_is_a_fraction_of_the_retention(clock: Clock, least: int, every: float) -> None:
    retention = TombstoneRetention({"flights": least, "others": DAY_MS}, clock)
    assert retention.check_interval_s == every
    assert not retention.is_exceeded("flights", clock.time - round(2 * every * 1000)), (
        "otherwise it would restart all the time"
    )


@pytest.mark.kafka
async def test_the_retention_is_read_from_the_brokers(
    broker: EmbeddedBroker, topics_prefix: str, state: NamedState
) -> None:
    configs = {
        "usual": {"cleanup.policy": "compact"},
        "short": {"cleanup.policy": "compact,delete", "delete.retention.ms": "7000"},
        "deleting": {"cleanup.policy": "delete"},
        "derived": {"cleanup.policy": "compact"},
        "windowed": {"cleanup.policy": "compact"},
    }
    for name, config in configs.items():
        Topic(broker.bootstrap, f"{topics_prefix}{name}", config)
    names = [*configs, "absent"]
    states = [
        replace(
            state,
            name=name,
            topic=f"{topics_prefix}{name}",
            key="key" if name in {"derived", "windowed"} else None,
            windowed=name == "windowed",
        )
        for name in names
    ]
    admin = admin_of(broker.bootstrap)
    assert await read_tombstone_retention(states, admin) == {
        "usual": DAY_MS,
        "short": 7000,
        "absent": DAY_MS,
        "windowed": DAY_MS,
    }
    assert await read_tombstone_retention([], admin) == {}


async def test_without_a_response_a_day_is_assumed(state: NamedState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tombstones, "RESPONSE_TIMEOUT_S", 0.2)
    assert await read_tombstone_retention([state], admin_of("127.0.0.1:1")) == {"flights": DAY_MS}


async def test_a_stopping_service_does_not_wait_for_a_silent_broker(state: NamedState) -> None:
    """It accepts the connection and sends nothing, like a machine that hangs."""
    stopping = iter((False, True))
    with silent_broker() as kafka:
        began = time.monotonic()
        assert await read_tombstone_retention([state], admin_of(kafka), lambda: next(stopping)) is None
        assert time.monotonic() - began < tombstones.RESPONSE_TIMEOUT_S / 2


async def test_a_silent_broker_is_queried_for_all_topics_together(
    state: NamedState, monkeypatch: pytest.MonkeyPatch
) -> None:
    within_s = tombstones.RESPONSE_TIMEOUT_S / 2
    monkeypatch.setattr(tombstones, "RESPONSE_TIMEOUT_S", 0.3)
    states = [replace(state, name=f"s{number}", topic=f"t{number}") for number in range(20)]
    with silent_broker() as kafka:
        began = time.monotonic()
        assert await read_tombstone_retention(states, admin_of(kafka)) == {one.name: DAY_MS for one in states}
        assert time.monotonic() - began < within_s


def admin_of(kafka: str) -> KafkaAdmin:
    return KafkaAdmin({"bootstrap.servers": kafka}, "test")


@contextmanager
def silent_broker() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"127.0.0.1:{silent.getsockname()[1]}"
