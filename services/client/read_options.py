"""The options of a read, and the query parameters made from options."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta


class ReadOptions(TypedDict, total=False):
    """The options of a read of one key. `wait` and `deadline` are in seconds."""

    fields: Sequence[str]
    """Dotted paths within the record's value, as state.status: the response has only these."""
    min_version: int | str
    """An answer of this version or a later one, for which the service waits up to `wait`.

    A whole number is a version of the present window and epoch; a tag names those too.
    """
    min_offset: tuple[int, int]
    """An answer that has merged the event at this partition and offset of the topic of events, waited for alike."""
    wait: float
    as_of: int | str
    """This very version, while it is kept: a whole number or a tag."""
    at: datetime
    """The newest window that contains this time, of a windowed state; without it, the newest window of all."""
    deadline: float
    """The limit of all attempts together; by default the deadline of the client."""


def key_query(options: ReadOptions) -> dict[str, object]:
    """Return the query of a read of one key."""
    event = options.get("min_offset")
    return {
        "fields": ",".join(options.get("fields", ())),
        "min_version": options.get("min_version"),
        "min_offset": None if event is None else f"{event[0]}:{event[1]}",
        "wait": options.get("wait"),
        "as_of": options.get("as_of"),
        "at": time_text(options.get("at")),
    }


def where_query(where: Mapping[str, str] | None) -> list[str]:
    """Return the values of the parameter `where`."""
    return [f"{path}:{value}" for path, value in (where or {}).items()]


def time_text(time: datetime | None) -> str | None:
    """Return the time as the service reads it. It needs an offset from UTC, or the service rejects it."""
    return None if time is None else time.isoformat()


def span_text(span: timedelta | None) -> str | None:
    """Return the span as the service reads it, in whole seconds."""
    return None if span is None else f"{round(span.total_seconds())}s"
