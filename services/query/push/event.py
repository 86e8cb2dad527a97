"""The decision of push: what a client receives about a key, from what it has and what the store has now."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from services.query.lookup.version_reference import closed_tag
from services.query.push.filter import RecordFields

if TYPE_CHECKING:
    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.filter import SubscriptionFilter
    from services.query.store import Entry

AFTER_EPOCHS = 1 << 63
"""Greater than every epoch."""


class EventKind(StrEnum):
    """The kind of an event about a key."""

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


class Reason(IntEnum):
    """Why a name waits. Of several reasons, the greatest counts."""

    CHANGED = 0
    """The key may have changed."""
    REQUESTED = 1
    """The client learns what the key is now, although it may have no value."""
    REMOVED = 2
    """A tombstone removed the key: it may reappear with any version."""


CHANGED, REQUESTED, REMOVED = Reason
STATE, LEFT, EXPIRED = EventKind.STATE, EventKind.LEFT, EventKind.EXPIRED
"""A member of an enumeration costs ten times as much as a global name, and each delivery needs some."""


class Answer:
    """What clients receive about a key, as JSON: the answer of a GET with its tag, or which key has no value."""

    __slots__ = ("body", "kind", "sse", "tag")

    def __init__(self, kind: EventKind, body: bytes, tag: str = "") -> None:
        self.kind = kind
        self.body = body
        self.tag = tag
        self.sse: bytes | None = None
        """The server-sent event, once a client has needed it."""


class Present:
    """The entry that readers see now, whether its window is closed, and its order as clients know it."""

    __slots__ = ("_record", "answer", "entry", "is_closed", "order")

    def __init__(self, entry: Entry, *, is_closed: bool) -> None:
        self.entry = entry
        self.is_closed = is_closed
        self.order: DeliveredOrder = (*entry[:3], 1) if is_closed else entry[:3]
        self._record: RecordFields | None = None
        self.answer: Answer | None = None
        """Encoded once for all clients."""

    @property
    def record(self) -> RecordFields:
        """The fields of the record, which are parsed once for all clients."""
        if self._record is None:
            self._record = RecordFields(self.entry.value)
        return self._record

    @property
    def tag(self) -> str:
        """The tag of the version as clients know it."""
        return closed_tag(self.entry.tag) if self.is_closed else self.entry.tag


def expired_order(window_start: int) -> DeliveredOrder:
    """The order of the end of a window: after all of its versions, and before those of the next window."""
    return window_start, AFTER_EPOCHS


def event(  # noqa: PLR0913, PLR0917  # all facts of the decision
    wanted: SubscriptionFilter,
    delivered: DeliveredOrder | None,
    present: Present | None,
    reason: Reason,
    oldest_window: int,
    silent_until: int = 0,
) -> EventKind | None:
    """The event that the client receives; None if it has the present version, or a later one, or never had the key.

    `delivered` is the order of the last version that the client has; None if it has none. Windows that start before
    `oldest_window` have expired. Keys whose last record is before the second `silent_until` are silent.
    """
    has_value = delivered is not None and delivered[1] < AFTER_EPOCHS
    if present is None:
        if reason is REMOVED:
            return EventKind.REMOVED if has_value or wanted.receives_all else None
        return _absent(wanted, delivered, reason, oldest_window)
    start, is_known = present.order[0], has_value or reason is REQUESTED
    is_another = delivered is None or delivered[:3] != present.order[:3] or not matches(wanted, present, silent_until)
    has_reappeared = reason is REMOVED and is_another
    if delivered is not None and present.order <= delivered and not has_reappeared:
        return EXPIRED if start < oldest_window and delivered < expired_order(start) else None
    if start < oldest_window:
        return EXPIRED if is_known else None
    if matches(wanted, present, silent_until):
        return STATE
    return LEFT if is_known else None


def matches(wanted: SubscriptionFilter, present: Present, silent_until: int) -> bool:
    """Whether the filter selects the entry now, whose key it selects."""
    is_silent = wanted.silent_for is None or present.entry.event_time // 1000 < silent_until
    return is_silent and (not wanted.where or wanted.matches(present.record))


def _absent(
    wanted: SubscriptionFilter, delivered: DeliveredOrder | None, reason: Reason, oldest_window: int
) -> EventKind | None:
    """The event about a key that readers do not see, without a tombstone: the window may have expired."""
    if delivered is None:
        return EventKind.NEVER_SEEN if reason is REQUESTED and wanted.key is not None else None
    if delivered[0] < oldest_window:
        return EXPIRED if delivered < expired_order(delivered[0]) else None
    return EventKind.REMOVED if reason is REQUESTED else None
