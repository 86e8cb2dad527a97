"""Sensors with alerts, on topics of one test, and a plain fold over snapshots and rule changes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import orjson

from contracts import AlertRule, Alerts, Application, BaseEvent, Latest, State, Table, Topics
from contracts.wire.alert_record import AlertRecord
from contracts.wire.window_key import window_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from contracts.wire import Snapshot

HOUR = timedelta(hours=1)


class Reading(BaseEvent):
    """A measurement of a sensor."""

    device_id: str
    value: int


class Sensor(State, window=HOUR):
    """The last measurement of each hour."""

    value: Annotated[int | None, Latest()]


class Limit(AlertRule):
    """Alerts open at `high`, and close below `low`."""

    high: int
    low: int


def above(snapshot: Snapshot, limit: Limit) -> bool:
    """Raises for a snapshot without a value."""
    return int(snapshot.state["value"]) >= limit.high


def below(snapshot: Snapshot, limit: Limit) -> bool:
    return int(snapshot.state["value"]) < limit.low


LIMITS = Table("limits", Limit)


def sensors(prefix: str) -> Application:
    """The application with topics of this prefix."""
    return Application(
        name="sensors",
        event=Reading,
        state=Sensor,
        deduplicate=False,
        topics=Topics(prefix=prefix),
        tables=(LIMITS,),
        alerts=(Alerts("too_high", LIMITS, above, below),),
    )


APP = sensors(os.environ.get("ALERTED_PREFIX", ""))

Crossing = tuple[str, str, int, int]
"""Window, rule, version of the rule, and version of the snapshot."""


@dataclass
class Oracle:
    """A plain fold: the alerts that opened, and those that closed, with the reason."""

    states: dict[str, tuple[int, int, datetime]] = field(default_factory=dict)
    rules: dict[str, tuple[int, Limit]] = field(default_factory=dict)
    pending: dict[tuple[str, str], tuple[Crossing, datetime]] = field(default_factory=dict)
    open: dict[tuple[str, str], Crossing] = field(default_factory=dict)
    opened: list[Crossing] = field(default_factory=list)
    closed: list[tuple[Crossing, str]] = field(default_factory=list)

    def snapshot(self, window: str, version: int, value: int, at: datetime) -> None:
        former = self.states.get(window, (0, 0, at))[0]
        if version > former:
            self.states[window] = version, value, at
            for rule in self.rules:
                if version > former + 1:  # nobody knows whether it was true in between
                    self.pending.pop((window, rule), None)
                self.evaluate(window, rule)

    def rule(self, name: str, version: int, limit: Limit | None) -> None:
        for window in list(self.states):
            place = window, name
            self.pending.pop(place, None)
            if place in self.open:
                self.closed.append((self.open.pop(place), "rule_removed" if limit is None else "rule_changed"))
        if limit is None:
            self.rules.pop(name, None)
            return
        self.rules[name] = version, limit
        for window in self.states:
            self.evaluate(window, name)

    def evaluate(self, window: str, name: str) -> None:
        (version, value, at), (rule_version, limit), place = self.states[window], self.rules[name], (window, name)
        if not fnmatchcase(window.partition("@")[0], limit.keys):
            return
        if place in self.open:
            if value < limit.low:
                self.closed.append((self.open.pop(place), "condition"))
        elif value < limit.high or value < limit.low:
            crossing, since = self.pending.pop(place, (None, at))
            if crossing is not None and at - since >= limit.hold:  # it was true until now
                self.open[place] = crossing
                self.opened.append(crossing)
                self.evaluate(window, name)
        else:
            crossing, since = self.pending.setdefault(place, ((window, name, rule_version, version), at))
            if at - since >= limit.hold:
                del self.pending[place]
                self.open[place] = crossing
                self.opened.append(crossing)


def transitions(
    records: Iterable[tuple[bytes | None, bytes | None]],
) -> tuple[list[Crossing], list[tuple[Crossing, str]]]:
    """The alerts that opened and closed, as one reads them in their topic: keys and values."""
    opened, closed, active = list[Crossing](), list[tuple[Crossing, str]](), dict[bytes | None, set[str]]()
    for key, value in records:
        record = AlertRecord.model_validate(orjson.loads(value or b""))
        window = window_key(record.device_id, record.first_seen)
        assert key == window
        before = active.get(key, set())
        changed = {one.id for one in record.alerts if one.status == ("closed" if one.id in before else "open")}
        assert sorted(record.changed) == (sorted(changed) if record.copied_from is None else [])
        for alert in record.alerts:
            name, at, rule, version, snapshot = alert.id.split("/")
            assert (name, at, rule, int(version)) == ("too_high", window.decode(), alert.rule, alert.rule_version)
            crossing = at, rule, int(version), int(snapshot.partition(".")[2])
            if alert.status == "open" and alert.id not in before:
                opened.append(crossing)
            if alert.status == "closed":
                if alert.id not in before:  # opened and closed by one record: by no sequence of snapshots
                    opened.append(crossing)
                closed.append((crossing, str(alert.closed_by)))
        active[key] = {alert.id for alert in record.alerts if alert.status == "open"}
    return opened, closed
