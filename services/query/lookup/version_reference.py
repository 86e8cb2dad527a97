"""References to a version of a key, as clients write them: a version number, or the tag of an entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from services.query.store import Entry, EntryOrder

REFERENCE = r"^(-?[0-9]{1,15}\.([0-9]{1,19}\.)?)?[0-9]{1,19}(\.closed)?$"
CLOSED = ".closed"
"""Ends the ETag of a version of a closed window."""
TAG = r"^(?:(-?[0-9]{1,19})\.(?:(-?[0-9]{1,19})\.)?)?(-?[0-9]{1,19})$"
"""Tags of releases before 0.2.0 lack the epoch. Streams that began with one resume here."""


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
    """The reference in a text that matches REFERENCE: version, window.version, window.epoch.version, or an ETag."""
    if text is None:
        return None
    *before, version = map(int, text.removesuffix(CLOSED).split("."))
    return VersionReference(before[0] if before else None, before[1] if len(before) > 1 else None, version)


def closed_tag(tag: str) -> str:
    """The ETag of the version with this tag in a closed window."""
    return tag + CLOSED


def parse_tag(tag: str) -> EntryOrder | None:
    """The order of the entry that has this tag; None if no entry can have it."""
    found = re.fullmatch(TAG, tag)
    return None if found is None else (int(found[1] or 0), int(found[2] or 0), int(found[3]))
