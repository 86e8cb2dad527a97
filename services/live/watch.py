"""From records to the view: decodes, counts and pairs. No I/O; every time is passed in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import orjson

from contracts.planning.plan import settled
from contracts.records.decode import Decoder
from contracts.records.record import RecordError
from contracts.wire import decode_snapshot
from services.live.devices import Devices
from services.live.figures import Latencies, Rate
from services.live.pairing import Pairing
from services.live.view import View

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts import Application
    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.live.settings import LiveSettings
    from services.live.surroundings import Surroundings

STATUSES = ("result", "absence", "failure", "skipped")


class Watch:
    """All that was seen. `now` is in seconds of a monotonic clock, `clock_time` the time of day."""

    def __init__(self, application: Application, settings: LiveSettings, now: float) -> None:
        window_s = settings.window.total_seconds()
        self._application = application
        self._settings = settings
        self._begin = now
        self._decoder = Decoder(application)
        self._pairing = Pairing(settings.remember)
        self._devices = Devices(application)
        self._events, self._snapshots = Rate(window_s, now), Rate(window_s, now)
        self._feedback = {status: Rate(window_s, now) for status in STATUSES}
        self._to_snapshot, self._to_enriched = Latencies(window_s), Latencies(window_s)
        self._letters: Counter[str] = Counter()
        topics = application.topics
        self._takers: dict[str, Callable[[Record, float, datetime], None]] = {
            topics.events: self._event,
            topics.feedback: self._answer,
            topics.snapshots: self._snapshot,
            topics.dead_letters: self._letter,
        }

    def take(self, record: Record, now: float, clock_time: datetime) -> None:
        """A record that arrived now. One that cannot be read counts, and no more: the job says why."""
        self._takers[record.topic](record, now, clock_time)

    def old(self, record: Record, now: float) -> None:
        """A snapshot from before the view began: to be shown, not to be counted."""
        if (snapshot := _decoded(record)) is not None:
            self._devices.put(snapshot, now)

    def view(self, now: float, clock_time: datetime, around: Surroundings) -> View:
        """What there is to show now."""
        answers = {status: rate.per_second(now) for status, rate in self._feedback.items()}
        totals = {"events": self._events.total, "snapshots": self._snapshots.total}
        totals |= {status: rate.total for status, rate in self._feedback.items()}
        return View(
            application=self._application.name,
            kafka=self._settings.kafka,
            up_s=now - self._begin,
            events=self._events.per_second(now),
            snapshots=self._snapshots.per_second(now),
            feedback=answers,
            calls=around.calls,
            totals=totals,
            to_snapshot=self._to_snapshot.quantiles(now),
            to_enriched=self._to_enriched.quantiles(now),
            job_lag=self._pairing.waiting,
            worker_lag=around.worker_lag,
            dead_letters=dict(self._letters.most_common()),
            enrichments=tuple(one.name for one in self._application.enrichments),
            devices=self._devices.rows(now, clock_time),
            parts=around.parts,
            console=self._settings.console,
            trouble=around.trouble,
        )

    def _event(self, record: Record, now: float, _: datetime) -> None:
        self._events.add(now)
        try:
            delta = self._decoder.event(record)
        except RecordError:
            return
        self._pairing.record((delta.device_id, delta.first_seen), delta.delta_id, now, is_event=True)

    def _answer(self, record: Record, now: float, _: datetime) -> None:
        try:
            delta = self._decoder.feedback(record)
        except RecordError:
            return
        self._feedback[(delta.answer or {})["status"]].add(now)
        self._pairing.record((delta.device_id, delta.first_seen), delta.delta_id, now, is_event=False)

    def _snapshot(self, record: Record, now: float, clock_time: datetime) -> None:
        self._snapshots.add(now)
        snapshot = _decoded(record)
        if snapshot is None:
            return
        paired = self._pairing.snapshot(snapshot.window, snapshot.order, now)
        if paired is None:
            return
        self._devices.put(snapshot, now)
        if paired.latency is not None:
            self._to_snapshot.add(now, paired.latency)
        if paired.since_last_event is not None and settled(self._application, snapshot, clock_time):
            self._to_enriched.add(now, paired.since_last_event)
            self._pairing.settled(snapshot.window)

    def _letter(self, record: Record, _: float, __: datetime) -> None:
        try:
            reason = orjson.loads(record.value or b"")["reason"]
        except (ValueError, KeyError, TypeError):
            reason = "unreadable"
        self._letters[str(reason)] += 1


def _decoded(record: Record) -> Snapshot | None:
    try:
        return decode_snapshot(record.value or b"")
    except ValueError:
        return None
