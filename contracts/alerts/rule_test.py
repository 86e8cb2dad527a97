"""Tests a rule that is not saved against present states, by the evaluation that the derive worker uses. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts.alerts.evaluation import Evaluation, Rules
from contracts.errors import described
from contracts.records.tables import TableRow
from contracts.wire import Snapshot
from contracts.wire.messages import LARGEST_COUNT

if TYPE_CHECKING:
    from contracts.model.alerts import AlertRule, Alerts
    from contracts.wire.alert_record import AlertRecord

LISTED = 20
"""The number of keys of each kind that are listed; the others are counted."""
NEXT_VERSION = LARGEST_COUNT
"""The version of a rule that is not saved: it differs from every saved version."""

NEVER = datetime.min.replace(tzinfo=UTC)


class RuleTest:
    """The changes in the alerts of one declaration if the rule is saved.

    Saving a rule closes the open alerts of its former version. Where the condition is true, a new alert is open at
    once, or pending for `hold`: until `now`, or in a replay, where `now` is None, by the times of the snapshots alone.
    """

    def __init__(self, alerts: Alerts, name: str, rule: AlertRule, now: datetime | None) -> None:
        self.alerts = alerts
        self.evaluated = 0
        """States that the rule applies to."""
        self.open = 0
        """The number of them that have an open alert of the rule after it is saved."""
        self.pending = 0
        """The number of them that have a pending alert."""
        self.opening: list[str] = []
        """The first keys that have an open alert then, and none now."""
        self.opening_count = 0
        self.closing: list[str] = []
        """The first keys that have an open alert now, and none then."""
        self.closing_count = 0
        self.failed = 0
        """States for which the condition raises."""
        self.failure: str | None = None
        """The first error of the condition."""
        self._name = name
        self._rule = rule
        rules = Rules({name: TableRow(NEXT_VERSION, rule, None, now or NEVER)})
        self._evaluation = Evaluation(alerts, rules, 0, self._fail, only=(name,), until=now)

    def add(self, snapshot: Snapshot, former: AlertRecord | None) -> None:
        """Count a state; `former` is the present alert record of its window."""
        if former is not None and former.first_seen != snapshot.first_seen:
            former = None
        key, was_open = snapshot.device_id, former is not None and self._has(former, "open")
        self.evaluated += bool(self._rule.applies_to(key))
        record = self._evaluation.evaluate(former, snapshot) or former
        is_open = record is not None and self._has(record, "open", NEXT_VERSION)
        self.open += is_open
        self.pending += record is not None and self._has(record, "pending", NEXT_VERSION)
        if is_open and not was_open:
            self.opening_count += 1
            self.opening += [key] if len(self.opening) < LISTED else []
        if was_open and not is_open:
            self.closing_count += 1
            self.closing += [key] if len(self.closing) < LISTED else []

    def add_other(self, former: AlertRecord) -> None:
        """Count an alert record of a key that the rule does not apply to: no state is needed for it."""
        self.add(
            Snapshot(
                device_id=former.device_id,
                first_seen=former.first_seen,
                epoch=former.epoch,
                version=former.version,
                as_of=former.as_of,
                state={},
            ),
            former,
        )

    def _has(self, record: AlertRecord, status: str, version: int | None = None) -> bool:
        return any(
            alert.rule == self._name and alert.status == status and version in (None, alert.rule_version)
            for alert in record.alerts
        )

    def _fail(self, _: str, __: TableRow, error: BaseException) -> None:
        self.failed += 1
        self.failure = self.failure or described(error)
