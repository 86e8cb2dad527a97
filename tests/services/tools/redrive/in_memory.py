"""Records without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT_MS = 1_767_225_600_000


def kept(
    topic: str, offset: int, *, headers: Iterable[tuple[str, str | bytes]] = (), value: bytes | None = None
) -> Record:
    """Return a record that its topic has not deleted."""
    content = b"%d" % offset if value is None else value
    return Record(topic, 0, offset, KEPT_MS + offset, b"d1", content, tuple(headers))
