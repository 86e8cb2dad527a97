"""The evaluation of rules against one snapshot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from contracts import Alerts
from contracts.alerts.evaluation import ALWAYS_FIT, ROOM, Evaluation, FullRecordError, Rules, expired
from contracts.records.record import LARGEST_SNAPSHOT
from contracts.records.tables import TableRow
from contracts.types.key import LARGEST_KEY
from contracts.wire import Snapshot
from contracts.wire.window_key import window_key
from tests.services.derive.alerted import LIMITS, Limit, above, below

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(device_id="a", first_seen=NOON, version=1, as_of=NOON, state={"value": 7})


def test_a_repeated_snapshot_changes_no_alert() -> None:
    rules = Rules({"rule": TableRow(1, Limit(high=5, low=5), "ann", NOON)})
    evaluation = Evaluation(Alerts("too_high", LIMITS, above, below), rules, 0, lambda *_: None)
    opened = evaluation.evaluate(None, SNAPSHOT)
    assert opened is not None
    assert [alert.status for alert in opened.alerts] == ["open"]
    assert evaluation.evaluate(opened, SNAPSHOT) is None


def test_a_repeated_snapshot_after_missing_ones_changes_no_alert() -> None:
    holds = {"a": 0, "b": 60, "c": 0}
    limits = {name: Limit(high=5, low=5, hold=timedelta(seconds=hold)) for name, hold in holds.items()}
    rules = Rules({name: TableRow(1, limit, "ann", NOON) for name, limit in limits.items()})
    alerts = Alerts("too_high", LIMITS, above, below)
    evaluation = Evaluation(alerts, rules, 0, lambda *_: None, is_next=False)
    opened = evaluation.evaluate(None, SNAPSHOT)
    assert opened is not None
    assert [alert.status for alert in opened.alerts] == ["open", "pending", "open"]
    assert evaluation.evaluate(opened, SNAPSHOT) is None


@pytest.mark.parametrize("hold", [timedelta(days=3_000_000), timedelta.max])
def test_an_alert_that_would_open_after_the_year_9999_stays_pending(hold: timedelta) -> None:
    rules = Rules({"rule": TableRow(1, Limit(high=5, low=5, hold=hold), "ann", NOON)})
    failed: list[str] = []
    evaluation = Evaluation(
        Alerts("too_high", LIMITS, above, below), rules, 0, lambda name, *_: failed.append(name), until=NOON
    )
    record = None
    for version, value in enumerate((7, 8, 3), start=1):
        facts = {"version": version, "state": {"value": value}}
        record = evaluation.evaluate(record, SNAPSHOT.model_copy(update=facts)) or record
        assert record is not None
        assert [alert.status for alert in record.alerts] == (["pending"] if value > 5 else [])
        assert rules.due(record, NOON + timedelta(days=1000)) == frozenset()
    assert failed == []


@pytest.mark.parametrize("name", ["{}", "{}" + 250 * "ä", "{}" + (LARGEST_KEY - 4) * "\1"])
def test_the_alerts_of_a_window_always_fit_into_a_record(name: str) -> None:
    key = LARGEST_KEY * "\2"
    rows = {
        name.format(number): TableRow(1, Limit(high=5, low=5, hold=timedelta(seconds=number % 2)), "ann", NOON)
        for number in range(2000)
    }
    full: list[str] = []

    def failed(rule: str, _: TableRow, error: BaseException) -> None:
        assert isinstance(error, FullRecordError)
        full.append(rule)

    evaluation = Evaluation(Alerts("too_high", LIMITS, above, below), Rules(rows), 0, failed)
    sizes, record, former = [], None, None
    for version, value in enumerate((7, 7, 7, 3, 7), start=1):
        at = NOON + timedelta(seconds=version)
        facts = {"version": version, "as_of": at, "state": {"value": value}, "device_id": key}
        record = evaluation.evaluate(former, SNAPSHOT.model_copy(update=facts))
        if record is not None:
            sizes.append(len(record.encode()))
            former = record
        if version == 1:
            assert record is not None
            assert len(record.alerts) + len(full) == len(rows), "each rule has an alert, or a report"
            assert len(record.alerts) > ALWAYS_FIT
    assert former is not None
    assert {alert.status for alert in former.alerts} == {"open", "pending"}, "those that had no room begin at last"
    sizes.append(len(expired(former, 0, NOON, 1).encode()))
    assert max(sizes) + len(window_key(key, NOON)) < LARGEST_SNAPSHOT
    assert max(sizes) > ROOM // 2, "no rule is refused before the record is nearly full"


def test_a_few_alerts_fit_whatever_their_names_are() -> None:
    name = LARGEST_KEY * "\1"
    rules = Rules({name: TableRow(1 << 53, Limit(high=5, low=5), "ann", NOON)})
    evaluation = Evaluation(Alerts(200 * "a", LIMITS, above, below), rules, 0, lambda *_: None)
    record = evaluation.evaluate(None, SNAPSHOT.model_copy(update={"device_id": name}))
    assert record is not None
    assert len(expired(record, 0, NOON, 1).encode()) * ALWAYS_FIT < ROOM
