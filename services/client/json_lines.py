"""Writes results as lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from services.client.answers import Expired, Found, NeverSeen
from services.client.watch_updates import Left, Mark

if TYPE_CHECKING:
    from services.client.pages import StateInfo
    from services.client.watch_updates import Update


def line(value: Update[Any] | Mark | StateInfo | str) -> str:
    """One line of JSON. What was found has `result` "found", and so on."""
    return orjson.dumps(value if isinstance(value, str) else _members(value)).decode()


def _members(value: Update[Any] | Mark | StateInfo) -> Any:
    if isinstance(value, Found):
        return {
            "result": "found",
            "state": value.state,
            "key": value.key,
            "epoch": value.epoch,
            "version": value.version,
            "window_start": value.window_start,
            "event_time": value.event_time,
            "age_s": value.age.total_seconds(),
            "source": value.source._asdict(),
            "lag": value.lag,
            "role": value.role,
            "instance": value.instance,
            "value": value.value,
        }
    if isinstance(value, NeverSeen | Expired):
        return {**value.facts, "result": "expired" if isinstance(value, Expired) else "never_seen"}
    if isinstance(value, Mark):
        return {"result": "mark", "waiting": value.waiting, "conflated": value.conflated, "lag": value.lag}
    if hasattr(value, "facts"):
        return value.facts
    return {"result": "left" if isinstance(value, Left) else "removed", "state": value.state, "key": value.key}
