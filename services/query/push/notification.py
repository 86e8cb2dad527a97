"""What subscribers are told of a key: one for all of them, so that it is encoded once."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.store.entry import Order


class NotificationKind(StrEnum):
    """What has become of the key."""

    STATE = "state"
    """It has this value."""
    REMOVED = "removed"
    """A record without value removed it."""
    EXPIRED = "expired"
    """Its life has ended."""
    LEFT = "left"
    """It does not have the values any more that the subscription asks for."""
    NEVER_SEEN = "never_seen"
    """It is not there; if it comes, that will be told."""


class Notification:
    """One key, and what became of it. `at` is when that was known here, in seconds of the hub's clock.

    `order`, `tag`, `partition` and `offset` are those of the entry that says so; without one, nothing and -1. `body`
    is the answer's JSON, made when somebody is about to get it.
    """

    __slots__ = ("_body", "_make", "at", "key", "kind", "offset", "order", "partition", "size", "sse", "state", "tag")

    def __init__(  # noqa: PLR0913  # what is told of one key
        self,
        kind: NotificationKind,
        state: str,
        key: str,
        at: float,
        *,
        order: Order | None = None,
        tag: str = "",
        partition: int = -1,
        offset: int = -1,
        size: int = 0,
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
        self.size = size
        """In bytes, of the value: what it costs to let it wait."""
        self.sse: bytes | None = None
        """As an event of a stream, once somebody needed it."""
        self._make = make
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The answer's JSON; of a key that has no value, which key of which state."""
        if self._body is None:
            if self._make is None:
                self._body = orjson.dumps({"state": self.state, "key": self.key})
            else:
                self._body = self._make()
                self._make = None
        return self._body
