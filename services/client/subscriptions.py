"""What one connection asks for, as the service's WebSocket wants it said: pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Interest:
    """A key of a state; or, where `key` is None, all keys with this prefix and these values of fields.

    `current`: what is there now is told first. Without, what changes while a connection is broken is not told.
    """

    state: str
    key: str | None = None
    prefix: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    current: bool = True


def subscribe(name: str, interest: Interest, after: str | None) -> dict[str, Any]:
    """The message that asks for it under this name. `after` is the tag of the last that was told of the key."""
    asked = {"type": "subscribe", "id": name, "state": interest.state, "current": interest.current}
    if interest.key is not None:
        return {**asked, "key": interest.key, **({"after": after} if after else {})}
    return {**asked, "prefix": interest.prefix, "where": dict(interest.where)}
