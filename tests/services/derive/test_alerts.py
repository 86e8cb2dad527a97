"""Alerts against a plain fold over snapshots and rule changes, while workers are killed at any point."""

from __future__ import annotations

import random
from collections import Counter, deque
from datetime import timedelta
from fnmatch import fnmatchcase

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from contracts import Alerts, Application, DeclarationError, Table
from contracts.records.tables import encode_row
from contracts.wire import LARGEST_HEAD, DeadLetter, Snapshot
from contracts.wire.alert_record import AlertRecord
from contracts.wire.window_key import window_key
from services.alerts.evaluator import AlertEvaluator
from services.alerts.partition import AlertPartition
from services.alerts.tables import RowChange, Tables
from services.runtime.job_progress import Published
from tests.services.derive.alert_steps import (
    broker_with,
    crossings,
    held_for,
    last_of,
    last_record,
    nothing_derived,
    publish,
)
from tests.services.derive.alerted import APP, HOUR, LIMITS, Limit, Oracle, Reading, Sensor, above, transitions
from tests.services.derive.crashing import AT, Broker, KilledError, Member

KEYS = ("a1", "a2", "b1")
PATTERNS = ("*", "a*", "a1", "[ab]1")
RESTORED = 3
"""The steps in which a worker reads the rules, the snapshots and the alerts."""
HOLDS = (timedelta(0), timedelta(0), timedelta(minutes=1))


class Story:
    """Random snapshots and rule changes for a broker and an oracle, and the fates of the workers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.broker, self.oracle = Broker(APP, self.fate), Oracle()
        self.versions: Counter[str] = Counter()
        self.at = AT
        self.kill, self.refuse, self.stop = self.random.choice(
            [(0.0, 0.0, 0.0), (0.1, 0.1, 0.0), (0.4, 0.0, 0.0), (0.1, 0.5, 0.0), (0.0, 0.3, 0.3)]
        )

    def fate(self) -> str:
        drawn = self.random.random() - self.kill
        if drawn < 0:
            return "kill"
        return "refuse" if drawn < self.refuse else "stop" if drawn < self.refuse + self.stop else "go"

    def change_rule(self) -> None:
        name, removes, low = self.random.choice("rs"), self.random.random() < 0.2, self.random.randint(1, 3)
        keys, hold = self.random.choice(PATTERNS), self.random.choice(HOLDS)
        limit = None if removes else Limit(keys=keys, hold=hold, low=low, high=self.random.randint(1, 3))
        value = None if limit is None else encode_row(LIMITS, name, limit.model_dump_json(), "ann")
        self.oracle.rule(name, self.broker.append("limits", name.encode(), value), limit)

    def publish(self) -> None:
        """Publish a snapshot: most often the next one, else an earlier one again."""
        key, start = self.random.choice(KEYS), AT + self.random.randint(0, 1) * HOUR
        window = window_key(key, start)
        at, self.at = window.decode(), self.at + timedelta(seconds=self.random.choice([1, 30, 90]))
        self.versions[at] += 1
        version = self.versions[at]
        if self.random.random() < 0.2:
            version = max(1, version - self.random.randint(1, 3))
        level = self.random.randint(0, 4)
        snapshot = Snapshot(device_id=key, first_seen=start, version=version, as_of=self.at, state={"value": level})
        self.broker.append("snapshots", window, snapshot.encode())
        self.oracle.snapshot(at, version, level, snapshot.as_of)

    def alerts(self) -> list[tuple[bytes | None, bytes | None]]:
        return [(one.key, one.value) for one in self.broker.topics["too_high"]]

    def run(self, *, waits: bool = True) -> None:
        """Run workers after each change of a rule and each batch of snapshots; or only now and then."""
        for _ in range(self.random.randint(1, 15)):
            if self.random.random() < 0.4:
                self.change_rule()
            else:
                for _ in range(self.random.randint(1, 8)):
                    self.publish()
            if waits or self.random.random() < 0.2:
                self.broker.run()
        self.broker.run()


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 1 << 32))
def test_each_crossing_has_one_alert_under_faults(seed: int) -> None:
    story = Story(seed)
    story.run()
    opened, closed = transitions(story.alerts())
    assert max(Counter(opened).values(), default=1) == 1
    assert Counter(opened) == Counter(story.oracle.opened)
    assert Counter(closed) == Counter(story.oracle.closed)
    assert not story.broker.topics["dead_letters"]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1 << 32))
def test_rules_and_snapshots_that_come_together_leave_the_alerts_of_the_last_states(seed: int) -> None:
    story = Story(seed)
    story.run(waits=False)
    opened, closed = transitions(story.alerts())
    assert max(Counter(opened).values(), default=1) == 1
    assert max(Counter(one for one, _ in closed).values(), default=1) == 1
    still = {(window, rule): version for window, rule, version, _ in set(opened) - {one for one, _ in closed}}
    for window, (_, value, _) in story.oracle.states.items():
        for rule, (version, limit) in story.oracle.rules.items():
            is_open = still.pop((window, rule), None)
            if not fnmatchcase(window.partition("@")[0], limit.keys) or value < limit.low:
                assert is_open is None
            elif value >= limit.high and not limit.hold:
                assert is_open == version
    assert not still, "of rules that are removed"


def test_the_alerts_of_a_window_close_when_it_expires() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    publish(broker, "a", 1, 7)
    broker.run()
    publish(broker, "b", 1, 1, AT + 2 * HOUR)
    broker.run()
    (alert,) = last_record(broker).alerts
    assert (alert.status, alert.closed_by) == ("closed", "expired")
    publish(broker, "a", 2, 7)
    broker.run()
    assert len(broker.topics["too_high"]) == 2, "a snapshot of an expired window changes nothing"


def test_a_snapshot_that_is_removed_closes_its_alerts() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    publish(broker, "a", 1, 7)
    broker.run()
    broker.append("snapshots", window_key("a", AT), None)
    broker.run()
    assert [(alert.status, alert.closed_by) for alert in last_record(broker).alerts] == [("closed", "expired")]


def test_an_alert_that_is_closed_before_its_snapshot_is_committed_does_not_open_again() -> None:
    """After the crash the rules are evaluated before the snapshot is read again, on the one before it."""
    broker, fates = broker_with(("r", Limit(high=5, low=5))), deque(["go"] * RESTORED + ["go", "kill"])
    publish(broker, "a", 1, 7)
    broker.run()
    publish(broker, "a", 2, 1)
    broker.fate = fates.popleft
    with pytest.raises(KilledError):
        Member(broker, is_live=False).run()
    broker.end()
    assert (last_record(broker).status, broker.committed) == ("closed", 1)
    broker.fate, broker.batch = lambda: "go", 0
    broker.run()
    broker.batch = 3
    broker.run()
    opened, closed = crossings(broker)
    assert (len(opened), len(closed), last_record(broker).status) == (1, 1, "closed")


class Hesitant(Broker):
    """Refuses the first commits. The alerts must not be written before it has accepted one."""

    refusals = 3
    accepted = 0

    @override
    def commit(self, offset: int) -> bool:
        if self.refusals:
            self.refusals -= 1
            return False
        self.accepted += 1
        return super().commit(offset)

    @override
    def append(self, topic: str, key: bytes | None, value: bytes | None) -> int:
        assert topic != "too_high" or self.accepted
        return super().append(topic, key, value)


def test_changes_by_a_rule_are_written_after_the_evaluated_offsets_are_committed() -> None:
    """Otherwise a worker that lost its partitions, and a restart before those offsets, would write for old states."""
    broker = Hesitant(APP, lambda: "go")
    publish(broker, "a", 1, 7)
    broker.run()
    broker.refusals, broker.accepted = 3, 0
    broker.append("limits", b"r", encode_row(LIMITS, "r", Limit(high=5, low=5).model_dump_json(), "ann"))
    broker.run()
    assert (last_record(broker).status, broker.refusals, broker.accepted) == ("open", 0, 1)


def test_the_dead_letter_of_a_large_rule_fits_into_a_record() -> None:
    broker = broker_with(("r", Limit(keys="a" + "*" * 100_000, high=5, low=5)))
    publish(broker, "a", 1, "no number")
    broker.run()
    assert len(broker.topics["dead_letters"][0].value or b"") < 2 * LARGEST_HEAD


def test_a_bad_row_is_a_dead_letter_and_the_former_rule_stays() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    broker.append("limits", b"r", b'{"value": {"high": "much"}}')
    broker.topics["limits"][-1] = broker.topics["limits"][-1]._replace(partition=5)  # the snapshots have one
    publish(broker, "a", 1, 7)
    broker.run()
    assert last_record(broker).status == "open"
    (dead_letter,) = (
        DeadLetter.model_validate(orjson.loads(one.value or b"")) for one in broker.topics["dead_letters"]
    )
    place = dead_letter.reason, dead_letter.topic, dead_letter.partition, dead_letter.offset
    assert place == ("invalid_row", "limits", 5, 1)
    assert "high: Input should be a valid integer" in (dead_letter.detail or "")


def test_a_condition_that_raises_makes_one_dead_letter_and_other_rules_go_on() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)), ("s", Limit(keys="b", high=5, low=5)))
    for version in range(1, 4):
        publish(broker, "a", version, "no number")
    publish(broker, "b", 1, 7)
    broker.run()
    assert {alert.rule for alert in last_record(broker).alerts} == {"r", "s"}
    (dead_letter,) = (
        DeadLetter.model_validate(orjson.loads(one.value or b"")) for one in broker.topics["dead_letters"]
    )
    assert "the condition of too_high raised ValueError" in (dead_letter.detail or "")
    assert (dead_letter.topic, dead_letter.partition, dead_letter.offset) == ("limits", 0, 0)


def test_a_stop_while_alerts_are_read_again_after_an_unconfirmed_write_replaces_no_alert() -> None:
    """The write of the second alert has no result, and SIGTERM comes while the first one is read again."""
    fates = deque[str]()
    broker = broker_with(("r", Limit(high=5, low=5)))
    broker.fate = lambda: fates.popleft() if fates else "go"
    for version in (1, 2):
        publish(broker, "a", version, 7)
    broker.run()
    (alert,) = last_record(broker).alerts
    publish(broker, "b", 1, 7)
    publish(broker, "a", 3, 7)
    fates.extend(["go"] * RESTORED + ["refuse", "stop"])
    broker.run()
    assert not fates
    opened, closed = crossings(broker)
    assert ([one[0].partition("@")[0] for one in opened], closed) == (["a", "b"], [])
    assert alert.id in {one.id for one in last_of(broker, "a").alerts}


def test_a_bad_row_and_a_rule_that_raises_have_one_dead_letter_for_each_version_however_often_workers_start() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)), ("s", Limit(high=6, low=6)))
    broker.append("limits", b"t", b'{"value": {"high": "much"}}')
    publish(broker, "a", 1, "no number")
    for _ in range(4):
        broker.run()
    publish(broker, "b", 1, "no number either")
    broker.run()
    assert _failed_rows(broker) == [("limits", 0), ("limits", 1), ("limits", 2)]
    broker.append("limits", b"r", encode_row(LIMITS, "r", Limit(high=4, low=4).model_dump_json(), "ann"))
    for _ in range(2):
        broker.run()
    assert _failed_rows(broker)[3:] == [("limits", 3)]


def test_a_dead_letter_of_a_rule_that_was_not_written_is_written_again() -> None:
    fates = deque[str]()
    broker = broker_with(("r", Limit(high=5, low=5)))
    broker.fate = lambda: fates.popleft() if fates else "go"
    publish(broker, "a", 1, "no number")
    fates.extend(["go"] * (RESTORED + 1) + ["refuse"])  # after the look for an earlier dead letter
    broker.run()
    assert not fates
    assert _failed_rows(broker) == [("limits", 0)]


def _failed_rows(broker: Broker) -> list[tuple[str, int]]:
    found = [DeadLetter.model_validate_json(one.value or b"") for one in broker.topics["dead_letters"]]
    assert {one.reason for one in found} == {"invalid_row"}
    return sorted((one.topic, one.offset) for one in found)


def test_alerts_by_a_table_that_is_not_declared_are_refused() -> None:
    with pytest.raises(DeclarationError, match="is not declared"):
        Application(name="sensors", event=Reading, state=Sensor, deduplicate=False, alerts=APP.alerts)
    with pytest.raises(DeclarationError, match="Reading is no AlertRule"):
        Alerts("too_high", Table("limits", Reading), above)


def test_a_partition_begins_with_all_rules_and_is_evaluated_by_those_that_change_later() -> None:
    tables = Tables(APP)
    evaluator = AlertEvaluator(
        APP, tables, AlertPartition(0, 0, ["too_high"]), {"too_high": 1}, nothing_derived, is_replay=True
    )
    for _ in range(2):
        assert evaluator.is_busy
        while evaluator.is_busy:
            assert evaluator.work() == []
            evaluator.accept()
        evaluator.change_row(RowChange("limits", "r"))
    evaluator.close()


def test_a_value_that_held_for_long_enough_until_the_next_snapshot_opens_an_alert() -> None:
    broker = broker_with(("r", held_for(10)))
    publish(broker, "a", 1, 7)
    publish(broker, "a", 2, 1, AT + timedelta(seconds=12))
    broker.run(is_live=True)
    records = [AlertRecord.model_validate_json(one.value or b"") for one in broker.topics["too_high"]]
    assert [
        [(alert.status, alert.opened_at, alert.closed_at) for alert in record.alerts] for record in records[-2:]
    ] == [
        [("open", AT + timedelta(seconds=10), None)],
        [("closed", AT + timedelta(seconds=10), AT + timedelta(seconds=12))],
    ]
    assert all(len(record.changed) == 1 for record in records[-2:])


def test_windows_that_a_catch_up_publishes_in_any_order_are_all_evaluated() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    for hours in (4, 0, 2, 1, 3):
        publish(broker, "a", 1, 7, AT + hours * HOUR)
    broker.run(is_live=True)
    assert len(crossings(broker)[0]) == 5


@pytest.mark.parametrize("restarts", [False, True])
def test_alerts_of_a_topic_of_snapshots_that_was_made_anew_close_by_its_first_snapshots(*, restarts: bool) -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    broker.restarts = restarts
    for version in range(1, 9):
        publish(broker, "a", version, 7 if version == 8 else 1)
    publish(broker, "b", 1, 7)
    broker.run(is_live=True)
    broker.topics["snapshots"].clear()
    publish(broker, "a", 9, 1)
    publish(broker, "a", 10, 7)
    broker.run(is_live=True)
    broker.end()
    opened, closed = crossings(broker)
    assert (len(opened), [by for _, by in closed]) == (3, ["condition"])


def test_an_alert_whose_window_has_no_snapshot_in_a_topic_that_was_made_anew_expires() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    for version in range(1, 9):
        publish(broker, "a", version, 7 if version == 8 else 1)
    broker.run(is_live=True)
    broker.topics["snapshots"].clear()
    publish(broker, "b", 1, 1, later := AT + 20 * 24 * HOUR)
    broker.published = Published(1, later, 0)
    broker.run(is_live=True)
    assert [alert.closed_by for alert in last_of(broker, "a").alerts] == ["expired"]
