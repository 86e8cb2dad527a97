"""The origin of a record: its position and its timestamp before a redrive sent it again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from contracts.types.header import header_number, header_text

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = "stateloop-redriven"
"""The header of a redriven record: the position of its origin, `topic/partition/offset`."""
TIME = "stateloop-redriven-time"
"""The header of a redriven record: the timestamp of its origin, in milliseconds since 1970."""

LATEST = round(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1000)
"""The latest time of an origin, in milliseconds since 1970."""


class Origin(NamedTuple):
    """The position and the timestamp of a record, which it keeps however often it is sent again."""

    position: str
    time: int
    """In milliseconds since 1970."""

    @classmethod
    def read(cls, position: str, time: int, headers: Mapping[str, bytes | str | None]) -> Origin:
        """Return the origin that the headers name; without them, the record's own position and time.

        Any producer may write the headers: a time that no `datetime` can hold is none.
        """
        place, at = header_text(headers.get(PLACE)), header_number(headers.get(TIME))
        return cls(place or position, time if not place or at is None or at > LATEST else at)

    def headers(self) -> dict[str, bytes]:
        """Return the headers of a copy of the record."""
        return {PLACE: self.position.encode(), TIME: b"%d" % self.time}
