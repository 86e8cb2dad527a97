"""The evaluation of rules against one snapshot."""

from __future__ import annotations

from datetime import UTC, datetime

from contracts import Alerts
from contracts.alerts.evaluation import Evaluation, Rules
from contracts.records.tables import TableRow
from contracts.wire import Snapshot
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
