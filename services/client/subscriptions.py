"""The filters of a watch, and their messages to the WebSocket."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from services.client.read_options import span_text, time_text

if TYPE_CHECKING:
    from collections.abc import Mapping

Window = Literal["newest", "all"] | datetime
NEWEST: Final = "newest"
ALL: Final = "all"


@dataclass(frozen=True)
class WatchFilter:
    """A key of a state; or, where `key` is None, all keys with this prefix and these values of fields.

    `current`: the present values are delivered first. Without it, changes during a reconnect are not delivered.
    `silent_for`: a key is delivered when its last record is older than this, and as Left when it is back.
    `window`, of a windowed state: "newest" (each key's newest window), "all" of them, or the one that contains a time.
    """

    state: str
    key: str | None = None
    prefix: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    current: bool = True
    window: Window = NEWEST
    silent_for: timedelta | None = None


def subscribe(name: str, interest: WatchFilter, after: str | None) -> dict[str, Any]:
    """Return the message that subscribes under this name. `after` is the tag of the last update of the key."""
    message: dict[str, Any] = {"type": "subscribe", "id": name, "state": interest.state, "current": interest.current}
    if window := window_text(interest.window):
        message["window"] = window
    if interest.silent_for is not None:
        message["silent_for"] = span_text(interest.silent_for)
    if interest.key is not None:
        return {**message, "key": interest.key, **({"after": after} if after else {})}
    return {**message, "prefix": interest.prefix, "where": dict(interest.where)}


def window_text(window: Window) -> str | None:
    """Return the windows as the service reads them; None for its default, the newest."""
    if isinstance(window, datetime):
        return time_text(window)
    return None if window == NEWEST else window
