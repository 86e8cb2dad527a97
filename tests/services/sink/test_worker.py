"""The main path of a sink, with all its dependencies in memory."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contracts.metrics import sink as metrics
from contracts.records.record import timestamp_ms
from contracts.sinks import Windows
from contracts.testing.stores import StoredRow
from services.runtime.errors import EverythingFailsError
from services.sink.dead_letters import MAX_KEYS
from tests.services.sink.in_memory import ControlledStore, Published, RunningSink, Topic, running, until
from tests.services.sink.records import START, STATE, Change, folded, record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.testing.memory_store import StoredState

CHANGES = [Change("abc"[number % 3], number // 40, version=1 + number // 3) for number in range(100)]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.sink.retried_store.FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr("services.sink.retried_store.LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr("services.runtime.worker.worker.ROOM_WAIT_S", 0.002)
    monkeypatch.setattr("services.sink.service.COMMIT_EVERY", timedelta(0))
    monkeypatch.setattr("services.sink.handler.VERIFY_EVERY_S", 3600.0)


def topic(changes: Iterable[Change] = CHANGES, start: int = 0) -> Topic:
    return Topic([record(change, offset=offset) for offset, change in enumerate(changes)], start)


def rows(state: StoredState) -> list[StoredRow]:
    return sorted(StoredRow(row.key, *row.order, json.loads(row.value)) for row in state.rows.values())


async def written(sink: RunningSink, position: int = len(CHANGES)) -> list[StoredRow]:
    await until(lambda: sink.store.state.positions.get(0) == position)
    return rows(sink.store.state)


async def test_rows_are_written_and_offsets_committed_after_them() -> None:
    async with running(topic(), sink_batch=7) as sink:
        assert await written(sink) == folded(CHANGES, Windows.NEWEST)
        await until(lambda: len(CHANGES) in sink.topic.committed)
        await until(lambda: sink.worker.unready() is None)
        assert sink.worker.unhealthy() is None
    assert sink.topic.closed
    assert max(len(step.rows) for batch in sink.store.batches for step in batch.steps) <= 3
    assert sink.counts.get(metrics.RECORDS, STATE.name) == len(CHANGES)
    assert sink.counts.get(metrics.CHANGED, STATE.name) <= sink.counts.get(metrics.ROWS, STATE.name)


async def test_an_outage_loses_nothing_stays_in_bounds_and_is_reported() -> None:
    async with running(topic(), unfinished=20, sink_batch=5) as sink:
        await until(lambda: sink.store.batches)
        sink.store.is_down = True
        sink.topic.records.append(record(Change("d"), offset=len(CHANGES)))  # there is something left to write
        down_at, attempts = sink.store.state.positions[0], sink.store.attempts
        await until(lambda: sink.store.attempts > attempts + 20)
        assert sink.topic.at - down_at <= 20 + sink.topic.batch
        assert max(sink.topic.committed) <= down_at
        assert "unavailable" in (sink.worker.unready() or "")
        assert "connection refused" in (sink.worker.unready() or "")
        assert sink.worker.unhealthy() is None
        opened = sink.store.opened
        sink.store.is_down = False
        assert await written(sink, len(CHANGES) + 1) == folded([*CHANGES, Change("d")], Windows.NEWEST)
        assert sink.store.opened == opened + 1
        await until(lambda: sink.worker.unready() is None)
    assert sink.counts.get(metrics.FAILURES, STATE.name) >= 20


async def test_a_store_that_does_not_answer_is_unavailable() -> None:
    async with running(topic(), sink_timeout=timedelta(seconds=0.02)) as sink:
        await until(lambda: sink.store.batches)
        sink.topic.records.append(record(Change("d"), offset=len(CHANGES)))
        sink.store.hangs = True
        await until(lambda: "no answer" in (sink.worker.unready() or ""))
        sink.store.hangs = False
        assert len(await written(sink, len(CHANGES) + 1)) == 4


async def test_a_sink_waits_for_its_store_and_can_be_stopped_meanwhile() -> None:
    store = ControlledStore()
    store.is_down = True
    async with running(topic(), store) as sink:
        await until(lambda: store.attempts > 3)
        assert "unavailable" in (sink.worker.unready() or "")
    assert not sink.topic.committed
    async with running(topic(), store) as sink:
        await until(lambda: store.attempts > 6)
        store.is_down = False
        assert await written(sink)
        store.is_down = True
        sink.topic.records.append(record(Change("d"), offset=len(CHANGES)))
        await until(lambda: sink.topic.at > len(CHANGES))
    assert max(sink.topic.committed) == len(CHANGES)


async def test_rows_that_the_store_refuses_become_dead_letters_and_the_others_are_written() -> None:
    changes = [*CHANGES, Change("x", version=1), Change("a", 9), Change("x", version=2), Change("y")]
    store, published = ControlledStore(), Published()
    store.refuses = {"x", "y"}
    source = topic(changes)
    source.batch = len(changes)
    async with running(source, store, published, sink_batch=len(changes)) as sink:
        assert await written(sink, len(changes)) == folded(
            [change for change in changes if change.key in "abc"], Windows.NEWEST
        )
    found = [(key, one.reason, one.detail, one.topic, one.offset) for key, one in published.dead_letters]
    last = len(CHANGES)
    assert sorted(found, key=lambda one: one[-1]) == [
        (b"x", "not_stored", "too large", "snapshots", last),
        (b"x", "not_stored", "too large", "snapshots", last + 2),
        (b"y", "not_stored", "too large", "snapshots", last + 3),
    ]
    assert published.dead_letters[0][1].head


async def test_a_timestamp_that_no_clock_shows_does_not_stop_the_sink() -> None:
    """A producer of an own topic may stamp a record, for example with microseconds in place of milliseconds."""
    microseconds, undecodable = timestamp_ms(START) * 1000, record(Change("b"), offset=1)._replace(value=b"{")
    source = Topic([one._replace(timestamp_ms=microseconds) for one in (record(Change("a")), undecodable)])
    published = Published()
    async with running(source, published=published) as sink:
        assert await written(sink, 2) == folded([Change("a")], Windows.NEWEST)
    assert [one.timestamp.year for _, one in published.dead_letters] == [9999]


async def test_no_position_passes_a_dead_letter_that_is_not_acknowledged() -> None:
    store, published = ControlledStore(), Published()
    store.refuses = {"x"}
    published.acknowledges.clear()
    async with running(topic([Change("x"), Change("a")]), store, published) as sink:
        await until(lambda: bool(published.dead_letters))
        for _ in range(100):
            await asyncio.sleep(0)
        assert store.state.positions == {}
        published.acknowledges.set()
        assert await written(sink, 2)


async def test_records_that_cannot_be_decoded_become_dead_letters_once() -> None:
    source = topic()
    source.records[50] = source.records[50]._replace(value=b"{")
    store, published = ControlledStore(), Published()
    conflicts = iter([{0: 0}])

    def move_once() -> None:
        store.state.positions.update(next(conflicts, {}))

    store.before_write = move_once
    async with running(source, store, published) as sink:
        await written(sink)
    ((_, dead_letter),) = published.dead_letters
    assert (dead_letter.reason, dead_letter.offset, dead_letter.detail) == ("not_stored", 50, "is not JSON")


async def test_a_sink_stops_when_every_record_is_refused() -> None:
    records = [record(Change(f"key {offset}"), offset=offset) for offset in range(2 * MAX_KEYS)]
    source, published = Topic([one._replace(value=b"{") for one in records]), Published()
    with pytest.raises(ExceptionGroup) as error:
        async with running(source, published=published) as sink:
            await until(lambda: sink.topic.closed)
    assert error.group_contains(EverythingFailsError, match="^the records of 100 keys .* Check STATELOOP_APPL")
    assert 0 < len(published.dead_letters) <= MAX_KEYS


async def test_one_key_that_is_always_refused_stops_nothing() -> None:
    changes = [Change("x", version=1 + number) for number in range(2 * MAX_KEYS)]
    store, published = ControlledStore(), Published()
    store.refuses = {"x"}
    async with running(topic([*changes, Change("a")]), store, published) as sink:
        assert await written(sink, len(changes) + 1) == folded([Change("a")], Windows.NEWEST)
    assert len(published.dead_letters) == len(changes)


async def test_many_bad_records_among_good_ones_stop_nothing() -> None:
    source = topic([Change(f"key {number}") for number in range(3 * MAX_KEYS)])
    source.records = [one._replace(value=b"{") if one.offset % 2 else one for one in source.records]
    source.batch = len(source.records)
    async with running(source) as sink:
        assert len(await written(sink, len(source.records))) == len(source.records) // 2
    assert len(sink.published.dead_letters) == len(source.records) // 2


async def test_a_new_store_is_filled_from_the_beginning() -> None:
    async with running(topic(start=60)) as sink:
        assert await written(sink) == folded(CHANGES, Windows.NEWEST)
    assert sink.topic.sought == [0]


async def test_a_store_that_loses_its_rows_while_the_sink_runs_is_filled_again() -> None:
    async with running(topic()) as sink:
        await written(sink)
        sink.store.state.rows.clear()
        sink.store.state.positions.clear()
        sink.topic.refused_seeks = 2
        sink.topic.records.append(record(Change("d", 2), offset=len(CHANGES)))
        everything = [*CHANGES, Change("d", 2)]
        assert await written(sink, len(everything)) == folded(everything, Windows.NEWEST)
    assert sink.topic.sought == [0]
    assert sink.counts.get(metrics.CONFLICTS, STATE.name) == 1


@pytest.mark.parametrize("start", [0, len(CHANGES)])
async def test_a_store_that_loses_its_rows_is_filled_again_without_a_new_record(
    start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.sink.handler.VERIFY_EVERY_S", 0.001)
    async with running(topic(start=start)) as sink:
        assert await written(sink) == folded(CHANGES, Windows.NEWEST)
        sink.store.state.rows.clear()
        sink.store.state.positions.clear()
        assert await written(sink) == folded(CHANGES, Windows.NEWEST)
    assert sink.topic.sought == [0] * (1 if start == 0 else 2)


async def test_a_store_that_goes_back_receives_the_lost_rows() -> None:
    async with running(topic(CHANGES[:90])) as sink:
        await written(sink, 90)
        kept = {key: row for key, row in sink.store.state.rows.items() if row.offset < 50}
        sink.store.state.rows.clear()
        sink.store.state.rows.update(kept)
        sink.store.state.positions[0] = 50
        sink.topic.records += [record(one, offset=90 + n) for n, one in enumerate(CHANGES[90:])]
        assert await written(sink) == folded(CHANGES, Windows.NEWEST)
    assert sink.topic.sought == [50]


async def test_two_sinks_that_both_take_a_partition_for_theirs_leave_the_right_rows() -> None:
    further = [Change("a", version=1), Change("a", version=None), Change("a", version=2), Change("b", version=None)]
    changes = [one for part in range(20) for one in (*CHANGES[5 * part : 5 * part + 5], *further)]
    store = ControlledStore()
    other = ControlledStore(store.state)
    async with running(topic(changes), store, sink_batch=3) as one, running(topic(changes), other, sink_batch=5) as two:
        await until(lambda: one.topic.at == two.topic.at == len(changes))
        await until(lambda: len(changes) in one.topic.committed and len(changes) in two.topic.committed)
    assert rows(store.state) == folded(changes, Windows.NEWEST)
    assert store.state.positions == {0: len(changes)}


async def test_a_topic_that_is_created_again_before_its_first_record_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No record has come since the assignment, so the client does not notice it: it goes to the beginning."""
    monkeypatch.setattr("services.sink.handler.VERIFY_EVERY_S", 0.001)
    read, store = Topic([], start=501), ControlledStore()
    store.state.positions[0] = read.group_offset = 501
    async with running(read, store):
        await until(lambda: read.lookups)
        read.group_offset, read.at = -1, 0
        read.records = topic().records
        await until(lambda: store.state.positions[0] == len(CHANGES))
    assert read.proofs == [0]
