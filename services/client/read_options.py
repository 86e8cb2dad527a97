"""The options of a read, and the parameters of the service that they are sent as."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence


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


def parameter(value: object) -> object:
    """Return an option as the service reads it in a query or a message; None stays.

    A time needs an offset from UTC, or the service rejects it. A span is in whole seconds.
    """
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return f"{round(value.total_seconds())}s"
        case (int(partition), int(offset)):
            return f"{partition}:{offset}"
        case Mapping():
            return [f"{path}:{text}" for path, text in value.items()]
        case [*paths]:
            return ",".join(map(str, paths))
    return value
