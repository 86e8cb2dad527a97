"""Writes results as lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from services.client.answers import Expired, Found, Left, NeverSeen, NoWindow, Removed
from services.client.coverage import KeyCoverage
from services.client.watch import Mark

if TYPE_CHECKING:
    from services.client.answers import Answer, Update
    from services.client.pages import StateInfo


RESULTS = {
    NeverSeen: "never_seen",
    NoWindow: "no_window",
    Expired: "expired",
    Left: "left",
    Removed: "removed",
}


def line(value: Answer[Any] | Update[Any] | Mark | StateInfo | KeyCoverage | str) -> str:
    """Return one line of JSON. Its `result` is "found", "expired", and so on."""
    return orjson.dumps(value if isinstance(value, str) else _members(value)).decode()


def _members(value: Answer[Any] | Update[Any] | Mark | StateInfo | KeyCoverage) -> Any:
    if isinstance(value, KeyCoverage):
        return {
            "result": "found",
            "state": value.state,
            "key": value.key,
            "field": value.field,
            "step_s": value.step.total_seconds(),
            "from": value.start,
            "to": value.end,
            "final_until": value.final_until,
            "intervals": [{"kind": kind, "from": start, "to": end} for kind, start, end in value.intervals],
        }
    if isinstance(value, Found):
        return {
            "result": "found",
            "state": value.state,
            "key": value.key,
            "epoch": value.epoch,
            "version": value.version,
            "window_start": value.window_start,
            **({"window_end": value.window_end, "is_open": value.is_open} if value.window_end else {}),
            "event_time": value.event_time,
            "age_s": value.age.total_seconds(),
            "source": value.source._asdict(),
            "lag": value.lag,
            "role": value.role,
            "instance": value.instance,
            "value": value.value,
        }
    if isinstance(value, NeverSeen | NoWindow | Expired):
        return {**value.facts, "result": RESULTS[type(value)]}
    if isinstance(value, Mark):
        return {"result": "mark", "waiting": value.waiting, "conflated": value.conflated, "lag": value.lag}
    if hasattr(value, "facts"):
        return value.facts
    window = {"window_start": value.window_start} if value.window_start else {}
    return {"result": RESULTS[type(value)], "state": value.state, "key": value.key, **window}
