"""Pending alerts open, and alerts of expired windows close, by the progress of the job."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import orjson
import pytest

from contracts.records.tables import encode_row
from contracts.wire import decode_snapshot
from contracts.wire.alert_record import AlertRecord
from contracts.wire.window_key import window_key
from services.alerts.evaluator import AlertEvaluator
from services.alerts.partition import AlertPartition
from services.alerts.tables import Tables
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
from tests.services.derive.alerted import APP, HOUR, LIMITS, Limit
from tests.services.derive.crashing import AT

if TYPE_CHECKING:
    from datetime import datetime

    from tests.services.derive.crashing import Broker


def test_a_pending_alert_opens_by_the_progress_of_the_job_while_no_snapshot_comes() -> None:
    broker = broker_with(("r", Limit(high=5, low=5, hold=timedelta(minutes=2))))
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    assert last_record(broker).status == "pending", "the job may be down"
    broker.published = Published(1, AT + timedelta(seconds=119), 0)
    broker.run(is_live=True)
    assert last_record(broker).status == "pending"
    broker.published = Published(1, AT + timedelta(seconds=120), 0)
    broker.run(is_live=True)
    (alert,) = last_record(broker).alerts
    assert (alert.status, alert.since, alert.opened_at) == ("open", AT, AT + timedelta(minutes=2))
    broker.published = Published(1, AT + timedelta(seconds=130), 0)
    broker.run(is_live=True)
    assert len(broker.topics["too_high"]) == 2


def test_no_alert_opens_while_the_job_has_not_published_what_ends_its_condition() -> None:
    """A frozen job: the value fell after five seconds, and the job publishes it an hour later."""
    broker = broker_with(("r", held_for(10)))
    publish(broker, "a", 1, 7)
    broker.published = Published(1, AT + timedelta(seconds=9), 0)
    broker.run(is_live=True)
    publish(broker, "a", 2, 1, AT + timedelta(seconds=5))
    broker.published = Published(2, AT + HOUR, 0)
    broker.run(is_live=True)
    assert last_record(broker).status == "closed"
    assert not crossings(broker)[0]


def test_an_alert_that_was_due_when_its_window_expired_opens_and_closes() -> None:
    """The job was down for longer than the states live: the progress passes both times at once."""
    broker = broker_with(("r", held_for(10)))
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    later = AT + 20 * HOUR
    broker.published = Published(1, later, 0)
    broker.run(is_live=True)
    (alert,) = last_record(broker).alerts
    opened_at = AT + timedelta(seconds=10)
    assert (alert.opened_at, alert.closed_at, alert.closed_by) == (opened_at, later, "expired")
    assert len(crossings(broker)[0]) == 1


def _rebuilt() -> Broker:
    """Return a broker with a value that fell in time, and its first snapshot of a job that reads the records again."""
    broker = broker_with(("r", held_for(10)))
    publish(broker, "a", 1, 7)
    publish(broker, "a", 2, 1, AT + timedelta(seconds=5))
    broker.published = Published(2, AT + HOUR, 0)
    broker.run(is_live=True)
    broker.epoch = 1
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    assert last_record(broker).status == "pending"
    return broker


def test_no_alert_opens_by_the_progress_that_was_recorded_before_a_rebuild() -> None:
    """The rebuilt job has not published again what ends the condition; each run begins with a new worker."""
    broker = _rebuilt()
    publish(broker, "a", 2, 1, AT + timedelta(seconds=5))
    broker.run(is_live=True)
    assert last_record(broker).status == "closed"
    assert not crossings(broker)[0]


def test_a_pending_alert_opens_by_the_progress_that_a_rebuilt_job_has_recorded() -> None:
    broker = _rebuilt()
    broker.published = Published(3, AT + timedelta(seconds=9), 1)
    broker.run(is_live=True)
    assert last_record(broker).status == "pending", "the time before the rebuild was later"
    broker.published = Published(3, AT + timedelta(seconds=10), 1)
    broker.run(is_live=True)
    assert last_record(broker).status == "open"


def test_a_window_that_was_over_opens_no_alert_after_a_restore() -> None:
    """A restored job publishes it again before its own progress has reached its end; the worker was restarted."""
    broker = broker_with(("r", Limit(high=5, low=5)))
    publish(broker, "a", 1, 7)
    over = Published(1, AT + 3 * HOUR, 0)
    broker.published = over
    broker.run(is_live=True)
    assert last_record(broker).status == "closed"
    broker.epoch = 1
    publish(broker, "a", 1, 7)
    broker.published = Published(2, AT + HOUR / 2, 1, over)
    broker.run(is_live=True)
    assert [len(each) for each in crossings(broker)] == [1, 1], "no second alert"
    publish(broker, "b", 1, 7, AT + 3 * HOUR)
    broker.run(is_live=True)
    assert last_of(broker, "b").status == "open"


def test_a_former_progress_with_unread_snapshots_is_not_followed() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    broker.published = Published(2, AT + timedelta(seconds=1), 1, Published(1, AT + 3 * HOUR, 0))
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    assert len(crossings(broker)[0]) == 1, "the worker was behind: the window was not over yet"


def test_a_pending_alert_of_a_window_that_is_not_published_again_opens_by_the_progress_of_a_rebuilt_job() -> None:
    """The broker has deleted its events, as after a rebuild that begins later."""
    broker = broker_with(("r", held_for(10)))
    publish(broker, "a", 1, 7)
    broker.epoch = 1
    publish(broker, "b", 1, 1)
    broker.published = Published(2, AT + HOUR, 1)
    broker.run(is_live=True)
    assert last_of(broker, "a").status == "open"


def test_a_pending_alert_begins_anew_where_snapshots_are_missing() -> None:
    """A catch-up publishes the last state of each window: the value may have fallen, and risen again, before it."""
    broker, later = broker_with(("r", held_for(10))), AT + timedelta(seconds=60)
    for key in "ab":
        publish(broker, key, 1, 7)
    broker.run(is_live=True)
    publish(broker, "a", 3, 1, later)
    publish(broker, "b", 3, 7, later)
    broker.published = Published(4, later, 0)
    broker.run(is_live=True)
    assert [(alert.status, alert.since) for alert in last_of(broker, "b").alerts] == [("pending", later)]
    broker.published = Published(4, later + timedelta(seconds=10), 0)
    broker.run(is_live=True)
    opened, closed = crossings(broker)
    assert [(one[0].partition("@")[0], one[3]) for one in opened] == [("b", 3)]
    assert not closed


def test_no_alert_opens_by_a_progress_whose_snapshots_are_unread() -> None:
    broker = broker_with(("r", held_for(10)))
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    broker.batch = 1
    publish(broker, "b", 1, 1, AT + timedelta(seconds=1))
    publish(broker, "a", 2, 1, AT + timedelta(seconds=5))
    broker.published = Published(3, AT + HOUR, 0)
    broker.run(is_live=True)
    assert last_record(broker).status == "closed"
    assert not crossings(broker)[0]


def test_the_alerts_of_a_quiet_partition_expire_by_the_progress_of_the_job() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    publish(broker, "a", 1, 7)
    later = AT + 20 * 24 * HOUR
    broker.run(is_live=True)
    assert last_record(broker).status == "open", "the job may be down"
    broker.published = Published(2, later, 0)
    broker.run(is_live=True)
    assert last_record(broker).status == "open", "a snapshot before that time may be unread"
    broker.published = Published(1, later, 0)
    broker.run(is_live=True)
    assert [alert.closed_by for alert in last_record(broker).alerts] == ["expired"]
    value = encode_row(LIMITS, "s", Limit(high=5, low=5).model_dump_json(), "ann")
    broker.append("limits", b"s", value)
    broker.run(is_live=True)
    assert last_record(broker).status == "closed", "a new rule finds no alert in an expired window"


def _expired() -> tuple[Broker, datetime]:
    """Return a broker with the alert of a window that has expired, and the progress of the job that shows it."""
    broker, later = broker_with(("r", Limit(high=5, low=5))), AT + 20 * 24 * HOUR
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    broker.published = Published(1, later, 0)
    broker.run(is_live=True)
    return broker, later


def test_an_alert_of_an_expired_window_does_not_open_again_when_another_worker_begins() -> None:
    """It begins behind the progress of the job, so it does not know which windows are expired."""
    broker, later = _expired()
    for version in (1, 2):
        publish(broker, "b", version, 1, later)
    broker.batch, broker.published = 1, Published(3, later + HOUR, 0)
    broker.run(is_live=True)
    opened, closed = crossings(broker)
    assert (len(opened), [by for _, by in closed]) == (1, ["expired"])


def test_an_alert_of_an_expired_window_does_not_open_again_when_the_progress_of_the_job_is_lost() -> None:
    """The broker deletes the progress of a job that was down for a week; another cluster may not have it."""
    broker, later = _expired()
    broker.published = None
    broker.append("limits", b"s", encode_row(LIMITS, "s", Limit(high=5, low=5).model_dump_json(), "ann"))
    broker.run(is_live=True)
    assert [alert.closed_by for alert in last_record(broker).alerts] == ["expired"]
    publish(broker, "b", 1, 7, later)
    broker.published = Published(2, later, 0)
    broker.run(is_live=True)
    opened, closed = crossings(broker)
    assert (len(opened), [by for _, by in closed]) == (3, ["expired"]), (
        "the window that lives has an alert of each rule"
    )


def test_a_rule_of_a_new_partition_does_not_wait_for_the_progress_of_the_job() -> None:
    """The partition was added, or the job has just begun: its first batch may take minutes."""
    partition = AlertPartition(0, 0, ())
    partition.reach(None)
    assert partition.is_current
    partition.states.close()


def test_an_alert_that_another_worker_has_opened_closes_though_its_window_expires_before_its_snapshot_is_read() -> None:
    broker, key = broker_with(("r", Limit(high=5, low=5))), window_key("a", AT)
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    partition = AlertPartition(0, 0, ["too_high"])
    partition.restore("too_high", last_record(broker))
    partition.reach(Published(0, AT + 20 * 24 * HOUR, 0))
    evaluator = AlertEvaluator(APP, Tables(APP), partition, {"too_high": 1}, nothing_derived, is_replay=False)
    assert evaluator.work() == [], "the snapshot of the alert is unread"
    evaluator.accept()
    (record,) = broker.topics["snapshots"]
    (output,) = evaluator.evaluate(record, decode_snapshot(record.value or b""))
    found = AlertRecord.model_validate(orjson.loads(output.value or b""))
    assert (output.key, [alert.closed_by for alert in found.alerts]) == (key, ["expired"])
    evaluator.close()


def test_a_worker_that_is_always_behind_the_newest_progress_follows_an_earlier_one() -> None:
    partition = AlertPartition(0, 3, ())
    partition.reach(Published(5, AT, 0))
    partition.offset = 4
    partition.reach(Published(9, AT + HOUR, 0))
    assert (partition.until, partition.is_current) == (None, False)
    partition.offset = 7
    partition.reach(Published(12, AT + 2 * HOUR, 0))
    assert (partition.until, partition.is_current) == (AT, True)
    partition.offset = 12
    partition.reach(Published(12, AT + 3 * HOUR, 0))
    assert partition.until == AT + 3 * HOUR
    partition.reach(Published(30, AT + 4 * HOUR, 0))
    partition.reach(Published(10, AT + 5 * HOUR, 0))  # the topic was made anew
    assert partition.until == AT + 5 * HOUR
    partition.states.close()


def test_a_record_that_is_no_snapshot_does_not_hold_up_the_progress() -> None:
    broker, later = broker_with(("r", Limit(high=5, low=5))), AT + 20 * 24 * HOUR
    publish(broker, "a", 1, 7)
    broker.append("snapshots", b"b", b"no snapshot")
    broker.published = Published(2, later, 0)
    broker.restarts = False
    broker.run(is_live=True)
    broker.run(is_live=True)
    broker.end()
    assert [alert.closed_by for alert in last_of(broker, "a").alerts] == ["expired"]


def test_an_alert_of_an_expired_window_closes_though_the_broker_has_deleted_the_snapshot() -> None:
    """No worker ran for longer than the broker stores snapshots."""
    broker, later = broker_with(("r", Limit(high=5, low=5))), AT + 20 * 24 * HOUR
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    broker.topics["snapshots"][0] = broker.topics["snapshots"][0]._replace(value=b"", key=None)
    broker.batch = 1
    for version in (1, 2):
        publish(broker, "b", version, 1, later)
    broker.published = Published(3, later, 0)
    broker.run(is_live=True)
    assert [alert.closed_by for alert in last_of(broker, "a").alerts] == ["expired"]


def test_compaction_of_a_snapshot_whose_successor_is_unread_leaves_its_alert_open() -> None:
    broker = broker_with(("r", Limit(high=5, low=5)))
    publish(broker, "a", 1, 7)
    broker.run(is_live=True)
    broker.topics["snapshots"][0] = broker.topics["snapshots"][0]._replace(value=b"", key=None)  # it is compacted
    broker.batch = 1
    for version in (2, 3):
        publish(broker, "b", version, 1)
    publish(broker, "a", 2, 7)
    broker.run(is_live=True)
    opened, closed = crossings(broker)
    assert (len(opened), closed) == (1, [])


@pytest.mark.parametrize("committed", [0, 50])
def test_a_committed_offset_beyond_the_end_skips_no_crossing(committed: int) -> None:
    """The log was truncated, or the offsets of the group were restored: the client goes on at the beginning."""
    broker = broker_with(("r", Limit(high=5, low=5)))
    broker.committed, broker.restarts = committed, False
    broker.published = Published(1, AT + timedelta(seconds=1), 0)
    for version, value in enumerate((7, 1, 7, 1, 7), 1):
        publish(broker, "a", version, value)
        broker.run(is_live=True)
    broker.end()
    opened, closed = crossings(broker)
    assert (len(opened), len(closed)) == (3, 2)
