"""Compares what an upgraded loop has published, called and stored with the plain fold of `upgraded.py`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition

from tests.compatibility.upgrade_apis import Apis, Call, Outage, is_uncommitted, repeated
from tests.compatibility.upgrade_loop import Row
from tests.compatibility.upgraded import PARTITIONS, PREFIX, Load, Window

if TYPE_CHECKING:
    import redis

TOPICS = ("snapshots", "feedback", "speeding", "plates", "dead_letters")


class Published:
    """All records of the topics."""

    def __init__(self) -> None:
        self.newest: dict[Window, dict[str, Any]] = {}
        """The newest snapshot of each session."""
        self.alerts: dict[Window, dict[str, Any]] = {}
        """The last record of the alerts of each session."""
        self.changes: Counter[tuple[Window, str]] = Counter()
        """How many times an alert of a session has opened, or closed."""
        self.counts: Counter[str] = Counter()
        """The number of records by topic."""
        self.answers: Counter[Window] = Counter()
        """The number of answers of each session."""
        self.unanswered: defaultdict[Window, list[float]] = defaultdict(list)
        """When snapshots of each session were published without an answer, in seconds since 1970."""
        self.again = 0
        """How many snapshots have a version that was published before."""
        self._status: dict[str, str] = {}

    def take(self, topic: str, value: bytes | None, at: float) -> None:
        """Add a record that was published at this time, in seconds since 1970."""
        if value is None:
            return
        self.counts[topic] += 1
        record: dict[str, Any] = json.loads(value)
        window = record.get("device_id", ""), instant(record.get("first_seen"))
        if topic == "snapshots":
            if "owner" not in record.get("enrichments", {}):
                self.unanswered[window].append(at)
            former = self.newest.get(window)
            if former is not None and _order(former) >= _order(record):
                self.again += 1
            else:
                self.newest[window] = record
        elif topic == "feedback":
            self.answers[window] += 1
        elif topic == "speeding":
            self.alerts[window] = record
            for one in record["alerts"]:
                self._change(window, one["id"], one["status"])

    def _change(self, window: Window, alert: str, status: str) -> None:
        if self._status.get(alert) != status:
            self._status[alert] = status
            self.changes[window, status] += 1


class Reader:
    """Reads the topics, on from where the last reading ended."""

    def __init__(self, kafka: str) -> None:
        self.published = Published()
        options = {"bootstrap.servers": kafka, "group.id": "judge", "enable.auto.commit": False, "log_level": 0}
        self._consumer = Consumer(options | {"auto.offset.reset": "earliest"})
        self._consumer.assign([TopicPartition(f"{PREFIX}{one}", at, 0) for one in TOPICS for at in range(PARTITIONS)])

    def read(self) -> Published:
        """Return all that was published."""
        while messages := self._consumer.consume(5000, 1.0):
            for message in messages:
                if message.error() is None:
                    topic, (_, time_ms) = (message.topic() or "").removeprefix(PREFIX), message.timestamp()
                    self.published.take(topic, message.value(), time_ms / 1000)
        return self.published


def instant(time: str | None) -> str:
    """Return a time in one form: a record may lack trailing zeros."""
    return "" if time is None else datetime.fromisoformat(time).isoformat(timespec="microseconds")


def _order(record: dict[str, Any]) -> tuple[int, int]:
    return record.get("epoch", 0), record["version"]


def judge(
    load: Load, published: Published, store: redis.Redis, outages: list[Outage], handovers: list[Outage]
) -> list[Row]:
    """Return a row for each promise. `outages` and `handovers`: of the enrichment workers."""
    sessions = load.sessions
    reread = reread_calls(load, published, handovers)
    expected = Counter({(at, "open"): one.opened for at, one in sessions.items() if one.opened})
    expected.update({(at, "closed"): one.closed for at, one in sessions.items() if one.closed})
    alerts = sum(expected.values())
    newest, feedback = published.newest, published.counts["feedback"]
    plates = {session.plate for session in sessions.values()}
    return [
        _row("final states", len(sessions), sum(_state(newest, at) == one.state() for at, one in sessions.items())),
        _row("merged records", load.sent + feedback, sum(one["version"] for one in newest.values())),
        _row("answers", len(sessions), len(published.answers.keys() & sessions.keys())),
        _answered_again(load, published, outages, reread),
        _row("alerts opened or closed", alerts, sum((published.changes & expected).values())),
        _row("further alerts", 0, sum((published.changes - expected).values())),
        _row("calls of the registry", len(plates), len({call.name for call in Apis.calls} & plates)),
        _repeated("calls of the registry again", Apis.calls, outages, reread),
        _row("alerts delivered", alerts, len({delivery.name for delivery in Apis.deliveries})),
        _repeated("alerts delivered again", Apis.deliveries, outages, set()),
        *_stored(load, published, store),
        _row("dead letters", 0, published.counts["dead_letters"]),
    ]


def _row(name: str, expected: int, found: int) -> Row:
    return Row(name, expected, found, expected == found)


def reread_calls(load: Load, published: Published, handovers: list[Outage]) -> set[str]:
    """Return the answered calls that docs/how-to/upgrade.md lets a new owner of the partition make again.

    The call had begun before the handover was over, and after that a snapshot without the answer was published, which
    the former owner may not have committed.
    """
    windows = {session.plate: window for window, session in load.sessions.items()}
    return {
        call.name
        for call in Apis.calls
        for start, end in handovers
        for published_at in published.unanswered[windows[call.name]]
        if call.began <= min(end, published_at) and start <= published_at
    }


def _answered_again(load: Load, published: Published, outages: list[Outage], reread: set[str]) -> Row:
    """At most those that were not yet committed in an outage: they come again from the cache, or by a call."""
    allowed = reread | _uncommitted(Apis.calls, outages)
    again = {window: number - 1 for window, number in published.answers.items() if number > 1}
    is_right = all(window in load.sessions and load.sessions[window].plate in allowed for window in again)
    return Row("answers again, at most", len(allowed), sum(again.values()), is_right)


def _repeated(name: str, calls: list[Call], outages: list[Outage], reread: set[str]) -> Row:
    """At most those that were in flight in an outage, or that a new owner makes again."""
    allowed, again = reread | _uncommitted(calls, outages), repeated(calls)
    return Row(f"{name}, at most", len(allowed), len(again), {call.name for call in again} <= allowed)


def _uncommitted(calls: list[Call], outages: list[Outage]) -> set[str]:
    return {call.name for call in calls if is_uncommitted(call, outages)}


def _stored(load: Load, published: Published, store: redis.Redis) -> list[Row]:
    couriers = {at: json.loads(_value(store, f"couriers:{at[0]}")) for at in load.newest.values()}
    speeding: dict[str, Window] = {at[0]: at for at in sorted(published.alerts)}
    owners = {one.plate: at[0] for at, one in load.sessions.items()}
    right = sum(one == published.newest.get(at) for at, one in couriers.items())
    driven = sum(
        json.loads(_value(store, f"plates:{plate}")).get("value") == {"courier": one} for plate, one in owners.items()
    )
    alerted = sum(json.loads(_value(store, f"speeding:{key}")) == published.alerts[at] for key, at in speeding.items())
    rows = len(list(store.scan_iter("[a-z]*:*", count=10_000)))
    return [
        _row("rows of couriers", len(couriers), right),
        _row("rows of plates", len(owners), driven),
        _row("rows of alerts", len(speeding), alerted),
        _row("all rows", len(couriers) + len(owners) + len(speeding) + 1, rows),  # a row of the table too
    ]


def _value(store: redis.Redis, key: str) -> str:
    found: str | None = store.hget(key, "value")  # type: ignore[assignment]
    return found or "{}"


def _state(newest: dict[Window, dict[str, Any]], window: Window) -> dict[str, Any]:
    """Return the state of the newest snapshot, and the owner."""
    snapshot = newest.get(window, {"state": {}})
    answers = {name: one.get("result") for name, one in snapshot.get("enrichments", {}).items()}
    return {**snapshot["state"], **answers}
