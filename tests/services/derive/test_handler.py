from __future__ import annotations

import asyncio
import sys
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pydantic import BaseModel

from contracts import Application, Derived
from contracts.metrics import derive as metrics
from contracts.metrics.counts import Counts
from contracts.records.record import Record, timestamp_ms
from contracts.types.key import LARGEST_KEY
from contracts.wire import Answer, DeadLetter, DerivedRecord, Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import derived_key
from examples.scooters.application import Ping, Place, Scooter, place, rule
from services.alerts.tables import Tables
from services.derive.batch import MOST_FAILURES
from services.derive.handler import DeriveDependencies
from services.derive.service import DRAIN, DROP_AFTER, STOP_WITHIN, worker_of
from services.derive.topics import names
from services.runtime.errors import DeliveryFailedError, EverythingFailsError, leaves
from services.runtime.kafka.membership import FRESH_S, NEVER
from services.runtime.kafka.producer import ROOM_S
from services.runtime.kafka.values import BY_KEY, Output
from services.runtime.worker.subscription import SESSION_MS
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from services.runtime.kafka.interfaces import RebalanceListener

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def _streets(snapshot: Snapshot) -> Iterable[tuple[str, Place]]:
    """One key for each place that is known; raises for one without a district."""
    answer = snapshot.enrichments.get("place")
    return [(answer.result["street"], Place.model_validate(answer.result))] if answer and answer.result else []


APP = Application(
    name="scooters",
    event=Ping,
    state=Scooter,
    enrichments=(place, rule),
    derived=(Derived("streets", Place, _streets),),
)


class Level(BaseModel):
    """The value of a derived state."""

    value: float


class InMemory:
    """A consumer of batches, after which the worker stops, and a producer. Implements FencedGroupConsumer, Producer.

    `undone` writes have an unknown result. The membership was proven `age_s` ago, or by a commit; `refused` commits
    are not accepted.
    """

    def __init__(self, *batches: Sequence[Record]) -> None:
        self.loop = VirtualTimeLoop()
        self.batches = deque(batches)
        self.records = {one.offset: one for batch in batches for one in batch}
        self.written: list[Output] = []
        self.position: int | None = None
        self.undone = self.refused = 0
        self.code = "_MSG_TIMED_OUT"
        """The code of the error of an undone write."""
        self.has_dropped = False
        self.age_s = 0.0
        self.confirms = True
        self.waits_for_next = False
        """Whether the first write waits for the acknowledgement of the second one."""
        self.acknowledged = asyncio.Event()
        self.committed_at = NEVER
        self.log: list[str] = []
        self.counted = Counts(metrics.CATALOGUE)

    # FencedGroupConsumer

    def subscribe(self, listener: RebalanceListener, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        loop.call_soon(listener.on_assigned, [0, 1])

    async def fetch(self, *, paused: bool, full: Collection[int], positions: Mapping[int, int]) -> list[Record]:
        assert not full
        await asyncio.sleep(0.1)
        if 0 in positions and positions[0] != self.position:
            self.position = positions[0]
            if self.confirms:
                self.listener.on_committed(dict(positions))
        if self.batches and not paused:
            return list(self.batches.popleft())
        if not self.records or self.position == max(self.records) + 1:
            self.worker.stop()
        return []

    async def seek(self, positions: Mapping[int, int]) -> Collection[int]:
        return positions

    async def next_offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        return dict.fromkeys(partitions, 5)

    def proven_at(self, partition: int) -> float:
        return max(self.loop.time() - self.age_s, self.committed_at) if partition in {0, 1} else NEVER

    async def prove(self, partition: int, position: int) -> bool:
        self.log.append(f"commit {partition} {position}")
        await asyncio.sleep(0)
        self.refused -= 1
        if self.refused < 0:
            self.committed_at = self.loop.time()
        return self.refused < 0

    async def lag(self) -> int:
        return 0

    def problem(self) -> None:
        """Nothing is missing."""

    async def close(self) -> None:
        """Leave nothing."""

    # Producer

    async def send(self, outputs: Sequence[Output]) -> Sequence[int]:
        self.log.append("write")
        await asyncio.sleep(0)
        if self.undone:
            self.undone -= 1
            raise DeliveryFailedError("streets", self.code, "no broker acknowledged it in time")
        if self.waits_for_next and len(self.log) == 1:
            async with asyncio.timeout(60):
                await self.acknowledged.wait()
        else:
            self.acknowledged.set()
        self.written.extend(outputs)
        return [0] * len(outputs)

    def drop_unsent(self) -> None:
        self.has_dropped = True

    @property
    def committed(self) -> list[int]:
        """The offsets before the committed position."""
        return [record for record in self.records if self.position is not None and record < self.position]

    @property
    def counts(self) -> dict[str, float]:
        """The counts that are not 0, without those of the runtime."""
        found = {one: self.counted.get(one) for one in metrics.CATALOGUE if one is not metrics.COMMITS}
        return {one.name: count for one, count in found.items() if count}

    def work(self, application: Application = APP) -> None:
        """Run a worker until it has committed all."""

        async def partition_counts() -> dict[str, int]:
            return {application.topics.snapshots: 1} | dict.fromkeys(names(application), 4)

        tables, clock = Tables(application), self.loop.time
        dependencies = DeriveDependencies(
            application, self, self, partition_counts, tables, None, self.counted, clock, is_replay=False
        )
        self.worker = worker_of(dependencies, 1000)
        try:
            self.loop.run_until_complete(self.worker.run())
        except BaseExceptionGroup as errors:
            raise next(leaves(errors)) from errors
        finally:
            self.loop.close()


def _record(offset: int, value: bytes) -> Record:
    return Record("snapshots", 0, offset, timestamp_ms(NOON), b"device", value)


def _snapshot(version: int, device: str = "s1", at: datetime = NOON, **result: str) -> bytes:
    answer = Answer(version=1, status="result", ts=NOON, fingerprint="f", result=result)
    enrichments = {"place": answer} if result else {}
    return Snapshot(
        device_id=device, first_seen=at, version=version, as_of=NOON, state={}, enrichments=enrichments
    ).encode()


def test_record_is_of_key_and_window_in_the_partition_of_the_key() -> None:
    kafka = InMemory([_record(0, _snapshot(3, street="Low Road", district="south"))])
    kafka.work()
    (written,) = kafka.written
    assert (written.topic, written.key) == ("streets", derived_key("Low Road", "s1", NOON))
    assert written.partition == partition(b"Low Road", 4)
    assert DerivedRecord.model_validate(orjson.loads(written.value or b"")) == DerivedRecord(
        key="Low Road",
        first_seen=NOON,
        version=3,
        as_of=NOON,
        device_id="s1",
        value={"street": "Low Road", "district": "south"},
    )
    assert kafka.counts == {metrics.SNAPSHOTS.name: 1, metrics.WRITTEN.name: 1}


def test_two_windows_of_a_device_have_records_of_their_own() -> None:
    older, newer = (
        _snapshot(1, street="Low Road", district="south", at=at) for at in (NOON, NOON + timedelta(hours=1))
    )
    kafka = InMemory([_record(0, newer), _record(1, older)])
    kafka.work()
    assert len({written.key for written in kafka.written}) == 2
    assert len({written.partition for written in kafka.written}) == 1


def test_snapshot_that_derives_nothing_is_committed_too() -> None:
    kafka = InMemory([_record(0, _snapshot(1))], [_record(1, _snapshot(2))])
    kafka.work()
    assert (kafka.written, kafka.committed) == ([], [0, 1])


def test_function_that_raises_makes_a_dead_letter() -> None:
    kafka = InMemory([_record(7, _snapshot(1, street="Nowhere")), _record(8, _snapshot(1, street="A", district="b"))])
    kafka.work()
    record, derived = kafka.written
    assert (record.topic, record.key, record.partition) == ("dead_letters", b"s1", BY_KEY)
    dead_letter = DeadLetter.model_validate(orjson.loads(record.value or b""))
    assert (dead_letter.reason, dead_letter.topic, dead_letter.offset) == ("not_derived", "snapshots", 7)
    assert dead_letter.detail is not None
    assert "district" in dead_letter.detail
    assert derived.topic == "streets"
    assert kafka.committed == [7, 8]


def test_record_that_is_too_large_makes_a_dead_letter() -> None:
    kafka = InMemory([_record(7, _snapshot(1, street="A", district="x" * APP.largest_record))])
    kafka.work()
    (record,) = kafka.written
    dead_letter = DeadLetter.model_validate(orjson.loads(record.value or b""))
    assert (dead_letter.reason, kafka.committed) == ("not_derived", [7])
    assert f"and {APP.largest_record} are allowed" in (dead_letter.detail or "")


@pytest.mark.parametrize("street", ["", "x" * (LARGEST_KEY + 1), "ä" * (LARGEST_KEY // 2 + 1)])
def test_a_key_that_no_query_can_find_makes_a_dead_letter(street: str) -> None:
    kafka = InMemory([_record(7, _snapshot(1, street=street, district="b"))])
    kafka.work()
    (record,) = kafka.written
    dead_letter = DeadLetter.model_validate(orjson.loads(record.value or b""))
    assert dead_letter.reason == "not_derived"
    assert "1 to 500 are allowed" in (dead_letter.detail or "")


@pytest.mark.parametrize(
    ("of", "detail"),
    [
        (lambda _: [("a", Level(value=float("nan")))], "ValueError: levels of 'a': value is not a finite number"),
        (lambda _: sys.exit(1), "SystemExit: 1"),
    ],
)
def test_a_value_that_no_record_can_have_and_sys_exit_make_a_dead_letter(of: Any, detail: str) -> None:
    derived = (Derived("levels", Level, of),)
    app = Application(name="scooters", event=Ping, state=Scooter, enrichments=(place, rule), derived=derived)
    kafka = InMemory([_record(7, _snapshot(1))])
    kafka.work(app)
    (record,) = kafka.written
    assert DeadLetter.model_validate(orjson.loads(record.value or b"")).detail == detail


def test_an_invalid_snapshot_is_counted_and_skipped() -> None:
    kafka = InMemory([_record(0, b"{}"), _record(1, b"")])
    kafka.work()
    assert (kafka.written, kafka.committed) == ([], [0, 1])
    assert kafka.counts[metrics.REJECTED.name] == 2


def test_worker_stops_when_everything_fails() -> None:
    bad = [_record(offset, _snapshot(1, f"s{offset}", street="Nowhere")) for offset in range(MOST_FAILURES)]
    kafka = InMemory(bad)
    with pytest.raises(EverythingFailsError, match="Fix the function"):
        kafka.work()
    assert (kafka.written, kafka.committed) == ([], [])


def test_one_key_alone_does_not_stop_it() -> None:
    kafka = InMemory([_record(offset, _snapshot(1, street="Nowhere")) for offset in range(3 * MOST_FAILURES)])
    kafka.work()
    assert kafka.counts[metrics.FAILED.name] == 3 * MOST_FAILURES


def test_failures_between_others_do_not_stop_it() -> None:
    bad, good = _snapshot(1, street="Nowhere"), _snapshot(1, street="A", district="b")
    first, second = ([_record(start + at, bad) for at in range(MOST_FAILURES - 1)] for start in (0, MOST_FAILURES + 1))
    kafka = InMemory([*first, _record(MOST_FAILURES, good), *second])
    kafka.work()
    assert kafka.counts[metrics.FAILED.name] == 2 * (MOST_FAILURES - 1)


def test_snapshots_that_were_undone_are_counted_when_they_are_settled() -> None:
    kafka = InMemory([_record(0, _snapshot(1))])
    kafka.undone = 2
    kafka.work()
    assert (kafka.committed, kafka.counts[metrics.SNAPSHOTS.name]) == ([0], 1)


def test_a_worker_that_was_not_frozen_writes_without_a_commit() -> None:
    kafka = InMemory([_record(7, _snapshot(1))])
    kafka.work()
    assert kafka.log == ["write"]


def test_what_was_read_long_ago_is_written_after_the_group_has_accepted_a_commit() -> None:
    kafka = InMemory([_record(7, _snapshot(1, street="A", district="b"))])
    kafka.age_s, kafka.refused = FRESH_S + 1, 2
    kafka.work()
    assert kafka.log == [*["commit 0 5"] * 3, "write"]
    assert len(kafka.written) == 1


def test_after_a_write_of_unknown_result_a_commit_precedes_the_next() -> None:
    kafka = InMemory([_record(7, _snapshot(1))])
    kafka.undone = 1
    kafka.work()
    assert kafka.log == ["write", "commit 0 5", "write"]


def test_a_record_that_the_broker_refuses_stops_the_worker() -> None:
    kafka = InMemory([_record(7, _snapshot(1))])
    kafka.undone, kafka.code = 1, "MSG_SIZE_TOO_LARGE"
    with pytest.raises(DeliveryFailedError, match="MSG_SIZE_TOO_LARGE"):
        kafka.work()
    assert (kafka.log, kafka.committed) == (["write"], [])


def test_a_worker_that_stops_drops_what_is_not_sent() -> None:
    kafka = InMemory([_record(7, _snapshot(1))])
    kafka.work()
    assert kafka.has_dropped


def test_failures_count_once_however_often_they_are_evaluated() -> None:
    bad, good = _snapshot(1, street="Nowhere"), _snapshot(1, street="A", district="b")
    kafka = InMemory([_record(offset, bad) for offset in range(MOST_FAILURES - 1)], [_record(MOST_FAILURES, good)])
    kafka.undone = 3
    kafka.work()
    assert kafka.counts[metrics.FAILED.name] == MOST_FAILURES - 1


def test_a_worker_that_stops_waits_for_a_broker_that_is_away_no_longer_than_for_its_work() -> None:
    """A revoked partition waits longer: until it is known what was written."""
    kafka = InMemory([_record(7, _snapshot(1))])
    kafka.confirms = False
    kafka.work()
    assert STOP_WITHIN.total_seconds() <= kafka.loop.time() < DRAIN.total_seconds()


def test_a_partition_does_not_wait_for_the_acknowledgements_of_another() -> None:
    first, second = (_snapshot(1, device, street="A", district="b") for device in ("s1", "s2"))
    kafka = InMemory([_record(7, first)], [_record(3, second)._replace(partition=1)])
    kafka.waits_for_next = True
    kafka.work()
    assert [DerivedRecord.model_validate_json(one.value or b"").device_id for one in kafka.written] == [
        "s2",
        "s1",
    ]


def test_the_fence_ends_before_the_session() -> None:
    fence = timedelta(seconds=FRESH_S + ROOM_S) + DROP_AFTER
    assert fence < min(DRAIN, timedelta(milliseconds=SESSION_MS))


def test_names_have_the_prefix() -> None:
    assert list(names(APP)) == ["streets"]
