"""Pairs records with the snapshots that they caused: pure, the times are passed in.

For each new record of a life the job publishes exactly one snapshot, so the arrivals of a life's records are queued and
each new version takes the first of them. What cannot be paired is not guessed at: a record seen twice, a version that
was passed already (the sink is at-least-once), a snapshot of a record that came before the view did.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from contracts.wire import Order

Life = tuple[str, "datetime"]

MOST_IDS = 256
ABANDONED_S = 120.0
"""After so long no snapshot comes any more: the job refused the record, or saw it before the view did."""


@dataclass(frozen=True)
class Paired:
    """What a new version of a life tells. Latencies in seconds, None when they cannot be known."""

    latency: float | None
    since_last_event: float | None
    """Since the life's last event; None while a later event is still under way, or when none was seen."""


@dataclass
class _Arrival:
    at: float
    is_event: bool


@dataclass
class _Track:
    """One life as seen so far."""

    order: Order | None = None
    waiting: deque[_Arrival] = field(default_factory=deque)
    ids: OrderedDict[str, None] = field(default_factory=OrderedDict)
    ahead: int = 0
    """Snapshots that arrived before their records did."""
    last_event: float | None = None


class Pairing:
    """All lives, the least recently heard of forgotten first."""

    def __init__(self, remember: int) -> None:
        self._remember = remember
        self._tracks: OrderedDict[Life, _Track] = OrderedDict()
        self.waiting = 0
        """Records that wait for their snapshot."""

    def record(self, life: Life, delta_id: str, now: float, *, is_event: bool) -> bool:
        """A record arrived; whether it is new."""
        track = self._track(life)
        if delta_id in track.ids:
            return False
        track.ids[delta_id] = None
        if len(track.ids) > MOST_IDS:
            track.ids.popitem(last=False)
        if is_event:
            track.last_event = now
        if track.ahead:
            track.ahead -= 1
        else:
            track.waiting.append(_Arrival(now, is_event))
            self.waiting += 1
        return True

    def snapshot(self, life: Life, order: Order, now: float) -> Paired | None:
        """A snapshot arrived, of this epoch and version; None for one that was passed."""
        track = self._track(life)
        if track.order is not None and order <= track.order:
            return None
        epoch, version = order
        before = track.order[1] if track.order is not None and track.order[0] == epoch else None
        known, step = before is not None or version == 1, version - (before or version - 1)
        track.order = order
        arrival = self._take(track, step, now)
        if arrival is None and known:
            track.ahead += 1
        event_under_way = any(one.is_event for one in track.waiting)
        since = None if track.last_event is None or event_under_way else now - track.last_event
        return Paired(None if arrival is None else now - arrival.at, since)

    def settled(self, life: Life) -> None:
        """All that the life's last event called for has been done: its time is not asked for again."""
        self._track(life).last_event = None

    def _take(self, track: _Track, step: int, now: float) -> _Arrival | None:
        """The arrival that belongs to a version that is so many steps on."""
        while track.waiting and track.waiting[0].at < now - ABANDONED_S and len(track.waiting) > step:
            self._pop(track)
        arrival = None
        for _ in range(min(step, len(track.waiting))):
            arrival = self._pop(track)
        return arrival

    def _pop(self, track: _Track) -> _Arrival:
        self.waiting -= 1
        return track.waiting.popleft()

    def _track(self, life: Life) -> _Track:
        track = self._tracks.setdefault(life, _Track())
        self._tracks.move_to_end(life)
        if len(self._tracks) > self._remember:
            _, forgotten = self._tracks.popitem(last=False)
            self.waiting -= len(forgotten.waiting)
        return track
