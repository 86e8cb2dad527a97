"""Evaluates rules against snapshots. Pure: the same snapshots and rules give the same alerts.

The evaluation depends on the state only, so it can be repeated: a snapshot that was evaluated before changes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import orjson

from contracts.errors import AUTHOR_ERRORS
from contracts.model.alerts import AlertRule
from contracts.records.record import LARGEST_SNAPSHOT
from contracts.wire.alert_record import Alert, AlertRecord
from contracts.wire.window_key import window_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from contracts.model.alerts import Alerts
    from contracts.records.tables import TableRow
    from contracts.wire import Snapshot
    from contracts.wire.alert_record import AlertStatus, ClosedBy

    Failed = Callable[[str, TableRow, BaseException], None]

ALWAYS_FIT = 50
"""The number of alerts that fit into one record, whatever their names are."""
ROOM = LARGEST_SNAPSHOT - 10_000
"""The most bytes that the alerts of a record take. The rest is for its other fields and its key."""
CLOSING = 150
"""The most bytes by which an alert grows until it has closed, without its id."""
NEVER = datetime.max.replace(tzinfo=UTC)
"""The time of an alert that no snapshot opens."""


class FullRecordError(ValueError):
    """The alerts of one window leave no room for a further one in their record."""

    def __init__(self, alerts: int) -> None:
        super().__init__(
            f"a window has {alerts} alerts, and their record has no room for a further one: its alert begins with a "
            "snapshot after others have ended. Let fewer rules apply to one key"
        )


class Rules:
    """The present rules. Rules of one key are found by the key; each rule of a pattern is checked."""

    def __init__(self, rows: Mapping[str, TableRow] | None = None) -> None:
        self._rows: dict[str, TableRow] = {}
        self._applies_to: dict[str, Callable[[str], object]] = {}
        self._by_key: dict[str, dict[str, TableRow]] = {}
        self._patterns: dict[str, TableRow] = {}
        for name, row in (rows or {}).items():
            self.change(name, row)

    def change(self, name: str, row: TableRow | None) -> None:
        """Put a rule, or remove it with None."""
        former = self._rows.pop(name, None)
        if former is not None:
            self._patterns.pop(name, None)
            self._by_key.get(rule_of(former).keys, {}).pop(name, None)
        if row is not None:
            rule = rule_of(row)
            self._rows[name] = row
            self._applies_to[name] = rule.applies_to
            if rule.is_pattern:
                self._patterns[name] = row
            else:
                self._by_key.setdefault(rule.keys, {})[name] = row

    def get(self, name: str) -> TableRow | None:
        """The rule of this name."""
        return self._rows.get(name)

    def names(self) -> Collection[str]:
        """The names of all rules."""
        return self._rows.keys()

    def of(self, key: str, only: Collection[str] | None = None) -> Iterator[tuple[str, TableRow]]:
        """The rules that apply to a key, with their names; of these names only, if there are any."""
        if only is not None:
            for name in only:
                row = self._rows.get(name)
                if row is not None and self._applies_to[name](key):
                    yield name, row
            return
        if key in self._by_key:
            yield from self._by_key[key].items()
        for name, row in self._patterns.items():
            if self._applies_to[name](key):
                yield name, row

    def due(self, record: AlertRecord, until: datetime) -> frozenset[str]:
        """Return the rules whose alerts have been pending until this time for as long as the rule demands."""
        pending = [(alert, self._rows.get(alert.rule)) for alert in record.alerts if alert.status == "pending"]
        return frozenset(
            alert.rule
            for alert, row in pending
            if row is not None and row.version == alert.rule_version and _opens_at(alert, row) <= until
        )


class Evaluation(NamedTuple):
    """The rules by which a snapshot is evaluated. `only` are the names of changed rules; without it, all are evaluated.

    `offset` is the offset of the last snapshot of the partition that was read. `until` is the time until which the
    snapshot is known to be the last one; without it, its `as_of`. `failed` takes a rule whose condition raises: its
    alert stays. `layout` is the number of partitions of the alerts. `is_next` is false if snapshots before this one are
    missing, in which a condition may have been false: pending alerts begin anew.
    """

    alerts: Alerts
    rules: Rules
    offset: int
    failed: Failed
    only: Collection[str] | None = None
    until: datetime | None = None
    layout: int | None = None
    is_next: bool = True

    def evaluate(self, former: AlertRecord | None, snapshot: Snapshot) -> AlertRecord | None:
        """Return the next record of the snapshot's window; None if no alert changes.

        An alert that was pending for long enough until this snapshot opens, and closes by the record after the next.
        """
        known = former.active if former else ()
        continued = known if self.is_next else tuple(alert for alert in known if alert.status == "open")
        begun = list(self._begun(continued, snapshot))
        if not known and not begun:  # most states: the cost of a changed rule for each of them
            return None
        kept = list(self._kept(continued, snapshot))
        if begun and len(kept) + len(begun) > ALWAYS_FIT:
            begun = self._fitting(kept, begun)
        alerts = kept + begun
        if {alert.id: alert for alert in alerts if alert.is_active} == {alert.id: alert for alert in known}:
            return None
        return _record(snapshot, self.offset, alerts, _changed(known, alerts), self.layout)

    def _kept(self, known: tuple[Alert, ...], snapshot: Snapshot) -> Iterator[Alert]:
        """The alerts that there were, as they are now. A pending one whose condition is false is left out."""
        for alert in known:
            row = self.rules.get(alert.rule)
            if not self._concerns(alert.rule):
                yield alert
            elif row is None or not rule_of(row).applies_to(snapshot.device_id):
                yield from closed(alert, snapshot.as_of, "rule_removed" if row is None else "rule_changed")
            elif row.version != alert.rule_version:
                yield from closed(alert, snapshot.as_of, "rule_changed")
            else:
                yield from self._stepped(alert, row, snapshot)

    def _stepped(self, alert: Alert, row: TableRow, snapshot: Snapshot) -> Iterator[Alert]:
        """An alert of the present version of its rule."""
        try:
            if alert.status == "open":
                over = self.alerts.is_over(snapshot, row.value)
                yield from closed(alert, snapshot.as_of, "condition") if over else (alert,)
            elif self.alerts.is_true(snapshot, row.value):
                yield self._opened(alert, row, snapshot)
            elif (opens_at := _opens_at(alert, row)) <= snapshot.as_of:  # it was true until this snapshot
                yield _open(alert, opens_at)
        except AUTHOR_ERRORS as error:
            self.failed(alert.rule, row, error)
            yield alert

    def _begun(self, known: tuple[Alert, ...], snapshot: Snapshot) -> Iterator[Alert]:
        """The alerts of rules that had none."""
        there = {(alert.rule, alert.rule_version) for alert in known} if known else ()
        for name, row in self.rules.of(snapshot.device_id, self.only):
            if (name, row.version) in there:
                continue
            try:
                begins = self.alerts.is_true(snapshot, row.value)
            except AUTHOR_ERRORS as error:
                self.failed(name, row, error)
                continue
            if begins:
                alert = Alert(
                    id=_identity(self.alerts.name, name, row.version, snapshot),
                    rule=name,
                    rule_version=row.version,
                    status="pending",
                    since=snapshot.as_of,
                )
                yield self._opened(alert, row, snapshot)

    def _fitting(self, kept: list[Alert], begun: list[Alert]) -> list[Alert]:
        """Return the new alerts for which the record has room, until all are closed."""
        room, fitting = ROOM - sum(map(_largest_size, kept)), []
        for alert in begun:
            row = self.rules.get(alert.rule)
            if (size := _largest_size(alert)) <= room or row is None:
                fitting.append(alert)
                room -= size
            else:
                self.failed(alert.rule, row, FullRecordError(len(kept) + len(fitting)))
        return fitting

    def _opened(self, alert: Alert, row: TableRow, snapshot: Snapshot) -> Alert:
        """Return a pending alert whose condition is true: open, if the condition has been true for long enough."""
        opens_at = _opens_at(alert, row)
        if max(snapshot.as_of, self.until or snapshot.as_of) < opens_at:
            return alert
        return _open(alert, opens_at)

    def _concerns(self, rule: str) -> bool:
        return self.only is None or rule in self.only


def _opens_at(alert: Alert, row: TableRow) -> datetime:
    """Return when a pending alert opens if its condition stays true: never, where that is after the year 9999."""
    try:
        return alert.since + rule_of(row).hold
    except OverflowError:
        return NEVER


def expired(former: AlertRecord, offset: int, at: datetime, layout: int) -> AlertRecord:
    """Return the record that closes all alerts of an expired window."""
    alerts = tuple(closed_alert for alert in former.active for closed_alert in closed(alert, at, "expired"))
    fields = {"offset": offset, "as_of": at, "status": "closed", "alerts": alerts}
    fields |= {"changed": tuple(alert.id for alert in alerts), "layout": layout, "copied_from": None}
    return former.model_copy(update=fields)


def _largest_size(alert: Alert) -> int:
    """Return the bytes that an alert takes at most in a record, with its id in `changed`."""
    return len(alert.encode()) + len(orjson.dumps(alert.id)) + CLOSING


def _open(alert: Alert, at: datetime) -> Alert:
    return alert.model_copy(update={"status": "open", "opened_at": at})


def closed(alert: Alert, at: datetime, by: ClosedBy) -> tuple[Alert, ...]:
    """Return the alert as closed; nothing for a pending alert."""
    if alert.status == "pending":
        return ()
    return (alert.model_copy(update={"status": "closed", "closed_at": at, "closed_by": by}),)


def rule_of(row: TableRow) -> AlertRule:
    """Return the rule of a row. The declaration has checked the model of its table."""
    if not isinstance(row.value, AlertRule):
        raise TypeError(f"{row.value!r} is no AlertRule")
    return row.value


def _changed(known: tuple[Alert, ...], alerts: list[Alert]) -> tuple[str, ...]:
    """The ids of the alerts that have opened or closed."""
    former = {alert.id: alert.status for alert in known}
    return tuple(alert.id for alert in alerts if alert.status not in ("pending", former.get(alert.id)))


def _record(
    snapshot: Snapshot, offset: int, alerts: list[Alert], changed: tuple[str, ...], layout: int | None
) -> AlertRecord:
    statuses = {alert.status for alert in alerts}
    status: AlertStatus = "open" if "open" in statuses else "pending" if "pending" in statuses else "closed"
    return AlertRecord(
        device_id=snapshot.device_id,
        first_seen=snapshot.first_seen,
        epoch=snapshot.epoch,
        version=snapshot.version,
        as_of=snapshot.as_of,
        offset=offset,
        status=status,
        alerts=tuple(alerts),
        changed=changed,
        layout=layout,
    )


def _identity(alerts: str, rule: str, rule_version: int, snapshot: Snapshot) -> str:
    """The name of an alert: the window, the version of the rule, and the snapshot with which it began."""
    window = window_key(snapshot.device_id, snapshot.first_seen).decode()
    return f"{alerts}/{window}/{rule}/{rule_version}/{snapshot.epoch}.{snapshot.version}"
