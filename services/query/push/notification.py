"""Notifications: one per change of a key, shared by all subscriptions, so that it is encoded once."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.lookup.version_reference import DeliveredOrder


class NotificationKind(StrEnum):
    """The change of a key."""

    STATE = "state"
    """It has this value."""
    REMOVED = "removed"
    """A tombstone removed it."""
    EXPIRED = "expired"
    """Its window has expired."""
    LEFT = "left"
    """It does not match the filter of the subscription any more."""
    NEVER_SEEN = "never_seen"
    """It does not exist yet; the subscription receives it when it appears."""


class Notification:
    """A change of one key. `at` is when this instance learned of it, in seconds of the clock of the service.

    `order`, `tag`, `partition` and `offset` are those of the entry; without one None, "" and -1. `window_start` is
    that of the window in a windowed state; None in other states, or where the key has no window. `body` is the JSON of
    the answer, encoded when the first client is about to receive it.
    """

    __slots__ = (
        "_body",
        "_make",
        "at",
        "key",
        "kind",
        "offset",
        "order",
        "partition",
        "size",
        "sse",
        "state",
        "tag",
        "window_start",
    )

    def __init__(  # noqa: PLR0913  # all facts of one change
        self,
        kind: NotificationKind,
        state: str,
        key: str,
        at: float,
        *,
        order: DeliveredOrder | None = None,
        tag: str = "",
        partition: int = -1,
        offset: int = -1,
        size: int = 0,
        window_start: int | None = None,
        make: Callable[[], bytes] | None = None,
    ) -> None:
        self.kind = kind
        self.state = state
        self.key = key
        self.at = at
        self.order = order
        self.tag = tag
        self.partition = partition
        self.offset = offset
        self.window_start = window_start
        self.size = size
        """Bytes of the value, which it costs in a queue."""
        self.sse: bytes | None = None
        """The server-sent event, once a client has needed it."""
        self._make = make
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The JSON of the answer; if the key has no value, state and key, and in a windowed state the window."""
        if self._body is None:
            if self._make is None:
                self._body = orjson.dumps({"state": self.state, "key": self.key})
            else:
                self._body = self._make()
                self._make = None
        return self._body


def gone_window_body(state: str, key: str, window_start: str | None) -> bytes:
    """The JSON of a notification without a value in a windowed state. The window's start is ISO 8601."""
    return orjson.dumps({"state": state, "key": key, "window_start": window_start})
