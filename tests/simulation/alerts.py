"""Judges the alerts of a run: their changes must follow from the snapshots and from one order of the rules' changes.

A version of a rule takes effect before some snapshot of a window, and ends before a later one: workers read rules and
snapshots at different speeds. So the judge follows all these possibilities, and one must explain what the topic has.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import orjson

from contracts import Emit
from contracts.wire import decode_snapshot
from contracts.wire.alert_record import Alert, AlertRecord
from contracts.wire.window_key import window_key
from tests.simulation.application import LIMITS, Limit
from tests.simulation.kafka.partitioner import partition_of
from tests.simulation.script import ENDS_S, START, time_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contracts import Alerts, Application
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from tests.simulation.recorded import Ledgers
    from tests.simulation.script import Script

    Window = tuple[str, datetime]

SETTLED = timedelta(seconds=60)
"""The time after a change and after a fault within which workers follow a change of a rule."""
STATUSES = "pending", "open", "closed"


class Published(NamedTuple):
    """A snapshot that is newer than all before it, and whether none is missing between."""

    snapshot: Snapshot
    at: datetime
    is_next: bool


class Version(NamedTuple):
    """A version of a rule, the time of the next one, and the reasons for which its alerts may end then."""

    name: str
    number: int
    since: datetime
    limit: Limit
    until: datetime | None
    reasons: frozenset[str]


class Change(NamedTuple):
    """An alert has opened, or closed."""

    id: str
    status: str
    at: datetime | None
    by: str | None = None


@dataclass
class Found:
    """What the topic has of one version of a rule in one window."""

    changes: list[Change] = field(default_factory=list)
    active: tuple[str, str] | None = None
    """The id and the status of the alert that is there at the end."""


@dataclass(frozen=True)
class Place:
    """Where a version of a rule is in a window, after so many changes: not in effect, without alert, and so on."""

    phase: str = "waiting"
    id: str = ""
    since: datetime = START
    seen: int = 0


def published_by_window(snapshots: Iterable[Record], emit: Emit) -> dict[Window, list[Published]]:
    """Return the snapshots of each window that are newer than all before them.

    With `Emit.BATCH` none is missing where some are left out.
    """
    found: dict[Window, list[Published]] = defaultdict(list)
    for record in snapshots:
        snapshot = decode_snapshot(record.value or b"")
        former = found[snapshot.window][-1].snapshot.order if found[snapshot.window] else None
        if former is None or snapshot.order > former:
            is_next = former is not None and snapshot.order == (former[0], former[1] + 1)
            is_next = is_next or emit is Emit.BATCH
            found[snapshot.window].append(Published(snapshot, record.timestamp, is_next))
    return found


def followed_for(application: Application) -> timedelta:
    """Return the least time from the start of a window after which workers know that it is over.

    With `Emit.CLOSE` the progress is the watermark: workers follow a window for the same time again after its snapshot.
    """
    kept_for = application.kept_for + application.skew
    return 2 * kept_for if application.emit is Emit.CLOSE else kept_for


def versions(rows: Iterable[Record]) -> list[Version]:
    """Return all versions of the rules."""
    by_name: dict[str, list[tuple[Record, Limit | None]]] = defaultdict(list)
    for record in rows:
        if record.value is None or (limit := limit_of(record)) is not None:
            by_name[(record.key or b"").decode()].append((record, limit if record.value is not None else None))
    return [
        Version(
            name,
            record.offset,
            record.timestamp,
            limit,
            later[0][0].timestamp if (later := changes[index + 1 :]) else None,
            frozenset("rule_removed" if one is None else "rule_changed" for _, one in later),
        )
        for name, changes in by_name.items()
        for index, (record, limit) in enumerate(changes)
        if limit is not None
    ]


def limit_of(record: Record) -> Limit | None:
    """Return the limit of a row; None for one that the model rejects."""
    try:
        return Limit.model_validate(orjson.loads(record.value or b"")["value"])
    except (ValueError, KeyError, TypeError):
        return None


def alert_problems(script: Script, ledgers: Ledgers, application: Application) -> Iterator[str]:
    """Return what is wrong with the alerts."""
    topics = application.topics
    published = published_by_window(ledgers.records[topics.snapshots], application.emit)
    rules = versions(ledgers.records[topics.table(LIMITS)])
    kept_for = application.kept_for + application.skew
    for alerts in application.alerts:
        topic = _Topic(ledgers.records[topics.derived(alerts.name)])
        yield from topic.problems
        for window, snapshots in published.items():
            number = partition_of(window[0].encode(), len(ledgers.logs[topics.snapshots]))
            progress = ledgers.progress[number].time if number in ledgers.progress else None
            for version in rules:
                found = topic.found.pop((window, version.name, version.number), Found())
                over = window[1] + kept_for, window[1] + followed_for(application)
                judge = _Judge(alerts, version, *over, found, progress, _Certainty(script, ledgers))
                if (problem := judge.problem(snapshots)) is not None:
                    yield f"{alerts.name} of {window[0]} since {window[1]:%H:%M:%S} by {version}: {problem}"
        for window, name, number in topic.found:
            yield f"{alerts.name} has alerts of {window} by {name} {number}, which is no rule"


class _Topic:
    """The changes of alerts in their topic, and what no sequence of changes allows."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.found: dict[tuple[Window, str, int], Found] = defaultdict(Found)
        self.problems: list[str] = []
        self._alerts: dict[str, Alert] = {}
        self._last: dict[Window, AlertRecord] = {}
        for record in records:
            self._add(AlertRecord.model_validate_json(record.value or b""))
        for window, last in self._last.items():
            for alert in last.active:
                self.found[window, alert.rule, alert.rule_version].active = alert.id, alert.status

    def _add(self, record: AlertRecord) -> None:
        window = record.device_id, record.first_seen
        former = self._last.get(window)
        if record == former:
            return  # written again
        if former is not None and (record.layout or 0, record.offset) < (former.layout or 0, former.offset):
            self.problems.append(f"{record} is behind {former}")
        kept = {alert.id for alert in record.alerts}
        self.problems += [
            f"{alert} is gone, and was not closed"
            for alert in (former.active if former else ())
            if alert.status == "open" and alert.id not in kept
        ]
        changed = [alert.id for alert in record.alerts if self._changes(window, alert)]
        if sorted(changed) != sorted(record.changed):
            self.problems.append(f"{changed} have changed, and {record} names others")
        self._last[window] = record

    def _changes(self, window: Window, alert: Alert) -> bool:
        """Follow an alert; return whether it has opened or closed."""
        former = self._alerts.get(alert.id)
        self._alerts[alert.id] = alert
        if former == alert:
            return False
        before = STATUSES.index(former.status) if former else -1
        if before >= STATUSES.index(alert.status) or (alert.status == "closed" and before != STATUSES.index("open")):
            self.problems.append(f"{alert} follows {former}")
        if alert.status == "pending":
            return False
        at = alert.closed_at if alert.status == "closed" else alert.opened_at
        found = self.found[window, alert.rule, alert.rule_version]
        found.changes.append(Change(alert.id, alert.status, at, alert.closed_by))
        return True


class _Certainty:
    """Judges whether workers have followed a change before a time. A worker that starts reads all changes."""

    def __init__(self, script: Script, ledgers: Ledgers) -> None:
        faults = [one for one in script.faults if one.part == "broker" or one.part.startswith("derive")]
        times = [(fault.at, fault.at + fault.lasts) for fault in faults]
        times += [(growth.began, growth.ended or ENDS_S) for growth in ledgers.growths]
        self._faults = sorted((time_at(begin), time_at(end)) for begin, end in times)

    def has_followed(self, change: datetime, at: datetime) -> bool:
        """Return whether derive workers and broker were without a fault for long enough since the change."""
        for begin, end in self._faults:
            if begin < at and end > change:
                if begin - change > SETTLED:
                    return True
                change = end
        return at - change > SETTLED


class _Judge:
    """Explains the changes of one version of a rule in one window."""

    def __init__(  # noqa: PLR0913, PLR0917  # what it judges by
        self,
        alerts: Alerts,
        version: Version,
        over_at: datetime,
        followed_until: datetime,
        found: Found,
        progress: datetime | None,
        certainty: _Certainty,
    ) -> None:
        self._alerts = alerts
        self._version = version
        self._over_at = over_at
        self._followed_until = followed_until
        self._found = found
        self._progress = progress
        self._certainty = certainty

    def problem(self, snapshots: Sequence[Published]) -> str | None:
        """Return what nothing explains; None if there is an explanation."""
        if not self._version.limit.applies_to(snapshots[0].snapshot.device_id):
            return f"{self._found} does not concern it" if self._found.changes else None
        places, former = {Place()}, None
        for published in snapshots:
            stepped = {
                place for one in self._between(places, former, published) for place in self._evaluated(one, published)
            }
            if not stepped:
                return f"{self._found} cannot follow from version {published.snapshot.order}, after {places}"
            places, former = stepped, published
        places = self._between(places, former, None)
        if not any(map(self._is_final, places)):
            return f"{self._found} cannot be the end, which is one of {places}"
        return None

    # Before a snapshot, and after the last one

    def _between(self, places: set[Place], former: Published | None, following: Published | None) -> set[Place]:
        found, left = set(places), list(places)
        while left:
            new = {place for place in self._moved(left.pop(), former, following) if place not in found}
            found |= new
            left += new
        return found

    def _moved(self, place: Place, former: Published | None, following: Published | None) -> Iterator[Place]:
        if place.phase == "over":
            return
        if place.phase == "pending":
            opens_at = place.since + self._version.limit.hold
            if following is None or following.snapshot.as_of >= opens_at or _is_rebuilt(former, following):
                yield from self._opened(place, opens_at)
        if self._version.until is not None and former is not None:
            yield from self._ended(place, former)
        if (time_at(ENDS_S) if following is None else following.at) > self._followed_until:
            yield from self._over(place, lambda by, at: by == "expired" and at > self._over_at)

    def _ended(self, place: Place, present: Published) -> Iterator[Place]:
        """The rule has changed: its alert closes by the present snapshot."""
        as_of, reasons = present.snapshot.as_of, self._version.reasons
        yield from self._over(place, lambda by, at: by in reasons and at == as_of)

    def _over(self, place: Place, is_allowed: Callable[[str | None, datetime], bool]) -> Iterator[Place]:
        if place.phase != "open":
            yield Place("over", seen=place.seen)
        elif (change := self._next(place, "closed")) is not None and is_allowed(change.by, change.at or START):
            yield Place("over", seen=place.seen + 1)

    # At a snapshot

    def _evaluated(self, place: Place, published: Published) -> Iterator[Place]:
        until = self._version.until
        if place.phase == "over":
            yield place
            return
        if place.phase == "waiting":
            if (
                not self._certainty.has_followed(self._version.since, published.at)
                or published.at > self._followed_until
            ):
                yield place
            place = replace(place, phase="idle")
        if until is not None:
            yield from self._ended(place, published)
        if until is None or not self._certainty.has_followed(until, published.at):
            yield from self._stepped(place, published)

    def _stepped(self, place: Place, published: Published) -> Iterator[Place]:
        snapshot, limit = published.snapshot, self._version.limit
        if limit.high < 0:
            yield place
            return
        is_true = self._alerts.is_true(snapshot, limit)
        if place.phase == "pending" and not published.is_next:
            place = Place("idle", seen=place.seen)
        if place.phase == "idle" and is_true:
            window = window_key(snapshot.device_id, snapshot.first_seen).decode()
            rule = f"{self._version.name}/{self._version.number}"
            name = f"{self._alerts.name}/{window}/{rule}/{snapshot.epoch}.{snapshot.version}"
            place = Place("pending", name, snapshot.as_of, place.seen)
        if place.phase == "pending":
            if (opens_at := place.since + limit.hold) <= snapshot.as_of:
                opened = list(self._opened(place, opens_at))
            else:
                opened = [place if is_true else Place("idle", seen=place.seen)]
        else:
            opened = [place]
        for one in opened:
            yield from self._closed(one, snapshot, limit)

    def _opened(self, place: Place, at: datetime) -> Iterator[Place]:
        change = self._next(place, "open")
        if change is not None and (change.id, change.at) == (place.id, at):
            yield replace(place, phase="open", seen=place.seen + 1)

    def _closed(self, place: Place, snapshot: Snapshot, limit: Limit) -> Iterator[Place]:
        if place.phase != "open" or not self._alerts.is_over(snapshot, limit):
            yield place
        elif (change := self._next(place, "closed")) is not None and change[2:] == (snapshot.as_of, "condition"):
            yield Place("idle", seen=place.seen + 1)

    # At the end

    def _next(self, place: Place, status: str) -> Change | None:
        """Return the next change, if it has this status, and is of the alert that is there."""
        changes = self._found.changes
        if place.seen == len(changes):
            return None
        change = changes[place.seen]
        return change if (change.id, change.status) == (place.id, status) else None

    def _is_final(self, place: Place) -> bool:
        active = (place.id, place.phase) if place.phase in {"pending", "open"} else None
        if place.seen < len(self._found.changes) or active != self._found.active:
            return False
        is_over = self._progress is not None and self._progress > self._over_at
        if is_over or self._version.until is not None:
            return place.phase in {"over", "waiting"}
        if place.phase == "pending" and self._progress is not None:
            return place.since + self._version.limit.hold > self._progress
        return place.phase != "waiting"


def _is_rebuilt(former: Published | None, following: Published) -> bool:
    """Return whether a job with an empty state has published the following snapshot."""
    return former is not None and former.snapshot.epoch != following.snapshot.epoch
