"""The origin of a record: where and when it was first, before a redrive sent it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = "stateloop-redriven"
"""The header of a redriven record: the place of its origin, `topic/partition/offset`."""
TIME = "stateloop-redriven-time"
"""The header of a redriven record: the timestamp of its origin, in milliseconds since 1970."""


class Origin(NamedTuple):
    """The place and the timestamp of a record, which it keeps however often it is sent again."""

    place: str
    time: int
    """In milliseconds since 1970."""

    @classmethod
    def read(cls, place: str, time: int, headers: Mapping[str, bytes | str | None]) -> Origin:
        """Return the origin that the headers name; that of a record without them is its own place and time."""
        given, at = _text(headers.get(PLACE)), _text(headers.get(TIME))
        return cls(given or place, int(at) if given and at.isdecimal() else time)

    def headers(self) -> dict[str, bytes]:
        """Return the headers of a copy of the record."""
        return {PLACE: self.place.encode(), TIME: b"%d" % self.time}


def _text(value: bytes | str | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""
