"""The filters of a watch, and their messages to the WebSocket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class WatchFilter:
    """A key of a state; or, where `key` is None, all keys with this prefix and these values of fields.

    `current`: the present values are delivered first. Without it, changes during a reconnect are not delivered.
    """

    state: str
    key: str | None = None
    prefix: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    current: bool = True


def subscribe(name: str, interest: WatchFilter, after: str | None) -> dict[str, Any]:
    """Return the message that subscribes under this name. `after` is the tag of the last update of the key."""
    message = {"type": "subscribe", "id": name, "state": interest.state, "current": interest.current}
    if interest.key is not None:
        return {**message, "key": interest.key, **({"after": after} if after else {})}
    return {**message, "prefix": interest.prefix, "where": dict(interest.where)}
