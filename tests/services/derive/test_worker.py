from __future__ import annotations

import sys
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pydantic import BaseModel

from contracts import Application, Derived
from contracts.metrics import Metric
from contracts.metrics import derive as metrics
from contracts.records.record import Record, timestamp_ms
from contracts.types.key import LARGEST_KEY
from contracts.wire import Answer, DeadLetter, DerivedRecord, Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import derived_key
from examples.scooters.application import Ping, Place, Scooter, place, rule
from services.derive.derive import BY_KEY, OutputRecord
from services.derive.errors import EverythingFailsError
from services.derive.worker import MOST_FAILURES, DeriveWorker, names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    """Gives batches, one after the other, then stops the worker; keeps what was written and committed."""

    def __init__(self, *batches: Sequence[Record]) -> None:
        self.batches = deque(batches)
        self.written: list[OutputRecord] = []
        self.committed: list[int] = []
        self.undone = 0
        self.stopping = False
        self.counts: Counter[str] = Counter()

    def read(self, wait_s: float = 0) -> Sequence[Record]:
        assert wait_s >= 0
        self.stopping = not self.batches
        return self.batches.popleft() if self.batches else ()

    def settle(self, records: Sequence[Record], outputs: Sequence[OutputRecord]) -> bool:
        if self.undone:
            self.undone -= 1
            self.batches.appendleft(records)
            return False
        self.written.extend(outputs)
        self.committed.extend(record.offset for record in records)
        return True

    def write(self, outputs: Sequence[OutputRecord]) -> bool:
        raise AssertionError(f"only alerts are written so: {outputs}")

    def count(self, metric: Metric, by: int) -> None:
        self.counts[metric.name] += by

    def work(self) -> None:
        DeriveWorker(APP, self, dict.fromkeys(names(APP), 4), self.count, lambda: self.stopping).run()


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
    assert DerivedRecord.model_validate(orjson.loads(written.value)) == DerivedRecord(
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
    dead_letter = DeadLetter.model_validate(orjson.loads(record.value))
    assert (dead_letter.reason, dead_letter.topic, dead_letter.offset) == ("not_derived", "snapshots", 7)
    assert dead_letter.detail is not None
    assert "district" in dead_letter.detail
    assert derived.topic == "streets"
    assert kafka.committed == [7, 8]


def test_the_key_of_a_dead_letter_is_bounded() -> None:
    kafka = InMemory([_record(7, _snapshot(1, device="k" * 1_048_400, street="Nowhere"))])
    kafka.work()
    (record,) = kafka.written
    assert record.key == b"k" * LARGEST_KEY


def test_record_that_is_too_large_makes_a_dead_letter() -> None:
    kafka = InMemory([_record(7, _snapshot(1, street="x" * APP.largest_record, district="b"))])
    kafka.work()
    (record,) = kafka.written
    dead_letter = DeadLetter.model_validate(orjson.loads(record.value))
    assert (dead_letter.reason, kafka.committed) == ("not_derived", [7])
    assert "are allowed" in (dead_letter.detail or "")


@pytest.mark.parametrize("street", ["", "x" * (LARGEST_KEY + 1), "ä" * (LARGEST_KEY // 2 + 1)])
def test_a_key_that_no_query_can_find_makes_a_dead_letter(street: str) -> None:
    kafka = InMemory([_record(7, _snapshot(1, street=street, district="b"))])
    kafka.work()
    (record,) = kafka.written
    dead_letter = DeadLetter.model_validate(orjson.loads(record.value))
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
    DeriveWorker(app, kafka, dict.fromkeys(names(app), 4), kafka.count, lambda: kafka.stopping).run()
    (record,) = kafka.written
    assert DeadLetter.model_validate(orjson.loads(record.value)).detail == detail


def test_an_invalid_snapshot_is_counted_and_skipped() -> None:
    kafka = InMemory([_record(0, b"{}"), _record(1, b"")])
    kafka.work()
    assert (kafka.written, kafka.committed) == ([], [0, 1])
    assert kafka.counts[metrics.REJECTED.name] == 2


def test_worker_stops_when_everything_fails() -> None:
    bad = [_record(offset, _snapshot(1, street="Nowhere")) for offset in range(MOST_FAILURES)]
    kafka = InMemory(bad)
    with pytest.raises(EverythingFailsError, match="Fix the function"):
        kafka.work()
    assert (kafka.written, kafka.committed) == ([], [])


def test_failures_between_others_do_not_stop_it() -> None:
    bad, good = _snapshot(1, street="Nowhere"), _snapshot(1, street="A", district="b")
    half = [_record(offset, bad) for offset in range(MOST_FAILURES - 1)]
    kafka = InMemory([*half, _record(MOST_FAILURES, good), *half])
    kafka.work()
    assert kafka.counts[metrics.FAILED.name] == 2 * (MOST_FAILURES - 1)


def test_snapshots_that_were_undone_are_counted_when_they_are_settled() -> None:
    kafka = InMemory([_record(0, _snapshot(1))])
    kafka.undone = 2
    kafka.work()
    assert (kafka.committed, kafka.counts[metrics.SNAPSHOTS.name]) == ([0], 1)


def test_names_have_the_prefix() -> None:
    assert list(names(APP)) == ["streets"]
