"""References to a version of a key, as clients write them: a version number, or the tag of an entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from contracts.api.watch import TAG
from contracts.records.state_record import FIRST_US, LARGEST, US_PER_MS

if TYPE_CHECKING:
    from services.query.store import Entry, EntryOrder

DeliveredOrder = tuple[int, ...]
"""The order of an entry; in a closed window, 1 follows. So it is greater than that of the same version before."""
CLOSED = ".closed"
"""Ends the tag of a version of a closed window."""


class VersionReference(NamedTuple):
    """A version of a key. Without `window_start` (milliseconds since 1970) or `epoch` it is of the present ones."""

    window_start: int | None
    epoch: int | None
    version: int

    def resolve(self, latest: Entry) -> EntryOrder:
        """The complete order, where `latest` is the latest entry of the key."""
        start, epoch, _ = latest.order
        start = start if self.window_start is None else self.window_start
        return start, epoch if self.epoch is None else self.epoch, self.version

    def is_reached_by(self, entry: Entry) -> bool:
        """Whether the entry is this version or a later one."""
        return entry.order >= self.resolve(entry)


def parse_reference(text: str | None) -> VersionReference | None:
    """The reference in a text as REFERENCE of the API: version, window.version, window.epoch.version, or an ETag."""
    if text is None:
        return None
    *before, version = map(int, text.removesuffix(CLOSED).split("."))
    return VersionReference(before[0] if before else None, before[1] if len(before) > 1 else None, version)


def closed_tag(tag: str) -> str:
    """The ETag of the version with this tag in a closed window."""
    return tag + CLOSED


def parse_tag(tag: str) -> DeliveredOrder | None:
    """The order of the value that has this tag; None if none can have it, as no record can have its numbers."""
    found = re.fullmatch(TAG, tag)
    if found is None:
        return None
    order = int(found[1] or 0), int(found[2] or 0), int(found[3])
    if order[0] * US_PER_MS < FIRST_US or max(map(abs, order)) > LARGEST:
        return None
    return delivered_order(order, is_closed=found[4] is not None)


def delivered_tag(order: DeliveredOrder) -> str:
    """The tag of the value with this order."""
    tag = ".".join(map(str, order[:3]))
    return tag if order[:3] == order else closed_tag(tag)


def delivered_order(order: EntryOrder, *, is_closed: bool) -> DeliveredOrder:
    """The order of a value with that of its entry: the same version comes once more when its window has closed."""
    return (*order, 1) if is_closed else order
