"""The test of a rule, against the evaluation of the saved rule and a plain comparison."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from contracts import Alerts
from contracts.alerts.evaluation import Evaluation, Rules
from contracts.alerts.rule_test import LISTED, RuleTest
from contracts.records.tables import TableRow
from contracts.wire import Snapshot
from tests.services.derive.alerted import LIMITS, Limit, above, below

if TYPE_CHECKING:
    from contracts.wire.alert_record import AlertRecord

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEYS = ("a-1", "a-2", "b-1", "b-2")


ALERTS = Alerts("too_high", LIMITS, above, below)
RULES = st.builds(
    Limit,
    keys=st.sampled_from(["*", "a-*", "b-?", "a-1", "[ab]-2"]),
    high=st.integers(0, 9),
    low=st.integers(0, 9),
    hold=st.sampled_from([timedelta(0), timedelta(seconds=30)]),
)
STATES = st.fixed_dictionaries(
    {}, optional={key: st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 60)) for key in KEYS}
)


def _snapshot(key: str, version: int, value: int, second: int) -> Snapshot:
    at = NOON + timedelta(seconds=second)
    return Snapshot(device_id=key, first_seen=NOON, version=version, as_of=at, state={"value": value})


def _saved(rules: dict[str, TableRow], now: datetime | None) -> Evaluation:
    def fail(name: str, _: TableRow, error: BaseException) -> None:
        raise AssertionError(name) from error

    return Evaluation(ALERTS, Rules(rules), 0, fail, until=now)


def _is_open(record: AlertRecord | None, rule: str) -> bool:
    return record is not None and any(alert.status == "open" and alert.rule == rule for alert in record.alerts)


@given(STATES, st.none() | RULES, RULES, RULES, st.none() | st.integers(0, 120))
def test_it_counts_the_changes_of_saving_the_rule(
    states: dict[str, tuple[int, int, int]], former: Limit | None, new: Limit, other: Limit, second: int | None
) -> None:
    now = None if second is None else NOON + timedelta(seconds=second)
    before = {"other": TableRow(1, other, "ann", NOON)}
    before |= {} if former is None else {"rule": TableRow(2, former, "ann", NOON)}
    after = before | {"rule": TableRow(3, new, "ann", NOON)}
    tested = RuleTest(ALERTS, "rule", new, now)
    opening, closing, are_open = list[str](), list[str](), 0
    for key, (earlier, value, at) in states.items():
        known = _saved(before, None).evaluate(None, _snapshot(key, 1, earlier, 0))
        snapshot = _snapshot(key, 2, value, at)
        known = _saved(before, None).evaluate(known, snapshot) or known
        tested.add(snapshot, known)
        was, then = _is_open(known, "rule"), _saved(after, now).evaluate(known, snapshot) or known
        opening += [key] if _is_open(then, "rule") and not was else []
        closing += [key] if was and not _is_open(then, "rule") else []
        waits = new.hold > timedelta(0) and (second is None or at + new.hold.total_seconds() > second)
        are_open += bool(new.applies_to(key)) and value >= new.high and value >= new.low and not waits
    assert (tested.opening, tested.closing) == (opening, closing)
    assert (tested.opening_count, tested.closing_count) == (len(opening), len(closing))
    assert tested.open == are_open
    assert tested.evaluated == sum(bool(new.applies_to(key)) for key in states)


def test_the_keys_that_are_listed_are_bounded_and_failures_are_counted() -> None:
    tested = RuleTest(ALERTS, "rule", Limit(high=1, low=1), NOON)
    for number in range(LISTED + 5):
        tested.add(_snapshot(f"k{number}", 1, 5, 0), None)
    assert (tested.opening_count, len(tested.opening), tested.open) == (LISTED + 5, LISTED, LISTED + 5)
    for _ in range(2):
        tested.add(Snapshot(device_id="broken", first_seen=NOON, version=1, as_of=NOON, state={}), None)
    assert (tested.failed, tested.failure) == (2, "KeyError: 'value'")


def test_the_alerts_of_keys_to_which_the_rule_does_not_apply_any_more_close() -> None:
    saved = _saved({"rule": TableRow(1, Limit(high=1, low=1), "ann", NOON)}, None)
    record = saved.evaluate(None, _snapshot("b-1", 1, 5, 0))
    assert record is not None
    tested = RuleTest(ALERTS, "rule", Limit(keys="a-*", high=1, low=1), NOON)
    tested.add_other(record)
    assert (tested.closing, tested.closing_count, tested.evaluated, tested.failed) == (["b-1"], 1, 0, 0)
    unrelated = RuleTest(ALERTS, "another", Limit(keys="a-*", high=1, low=1), NOON)
    unrelated.add_other(record)
    assert unrelated.closing_count == 0


def test_the_alert_of_an_earlier_window_is_not_that_of_the_state() -> None:
    saved = _saved({"rule": TableRow(1, Limit(high=1, low=1), "ann", NOON)}, None)
    record = saved.evaluate(None, _snapshot("b-1", 1, 5, 0))
    later = _snapshot("b-1", 1, 5, 0).model_copy(update={"first_seen": NOON + timedelta(hours=1)})
    tested = RuleTest(ALERTS, "rule", Limit(high=1, low=1), NOON)
    tested.add(later, record)
    assert (tested.opening, tested.closing) == (["b-1"], [])
