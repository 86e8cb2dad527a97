"""Builds the path and query of a URL. Keys and values are percent-encoded, slashes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

ROOT = "/v1/states"


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


class KeyFilter(NamedTuple):
    """The keys with this prefix and these values of indexed fields.

    With `silent_for`, only those whose last record is older, the ones silent longest first.
    """

    prefix: str
    where: Mapping[str, str]
    silent_for: timedelta | None = None


class WindowRange(NamedTuple):
    """The windows of a key that start at `start` or later, and before `end`; where one is None, without that limit."""

    start: datetime | None
    end: datetime | None
    newest_first: bool
    fields: Sequence[str]


class WindowFilter(NamedTuple):
    """The keys of one window with this prefix and these values of indexed fields.

    `order_by` is the path of an indexed number, with `-` before it for the largest first; without it, keys are in their
    own order.
    """

    prefix: str
    where: Mapping[str, str]
    order_by: str | None
    fields: Sequence[str]


def key_target(state: str, key: str, options: ReadOptions, suffix: str = "") -> str:
    """Return the target of one key."""
    event = options.get("min_offset")
    parameters = {
        "fields": ",".join(options.get("fields", ())),
        "min_version": options.get("min_version"),
        "min_offset": None if event is None else f"{event[0]}:{event[1]}",
        "wait": options.get("wait"),
        "as_of": options.get("as_of"),
        "at": time_text(options.get("at")),
    }
    return f"{state_target(state)}/{quote(key, safe='')}{suffix}{query(parameters)}"


def watch_target(state: str, key: str, window: str | None) -> str:
    """Return the target of a watch of one key."""
    return f"{state_target(state)}/{quote(key, safe='')}/watch{query({'window': window})}"


def page_target(state: str, wanted: KeyFilter, after: str | None, limit: int | None) -> str:
    """Return the target of a page of keys."""
    filters = [("where", f"{path}:{value}") for path, value in wanted.where.items()]
    parameters = {"prefix": wanted.prefix, "silent_for": span_text(wanted.silent_for), "after": after, "limit": limit}
    return state_target(state) + query(parameters, filters)


def windows_target(state: str, key: str, wanted: WindowRange, cursor: str | None, limit: int | None) -> str:
    """Return the target of a page of a key's windows."""
    parameters = {
        "from": time_text(wanted.start),
        "to": time_text(wanted.end),
        "order": "desc" if wanted.newest_first else None,
        "fields": ",".join(wanted.fields),
        "cursor": cursor,
        "limit": limit,
    }
    return f"{state_target(state)}/{quote(key, safe='')}/windows{query(parameters)}"


def coverage_target(state: str, key: str, start: datetime | None, end: datetime | None, field: str | None) -> str:
    """Return the target of the coverage of a key."""
    parameters = {"from": time_text(start), "to": time_text(end), "field": field}
    return f"{state_target(state)}/{quote(key, safe='')}/coverage{query(parameters)}"


def window_target(state: str, at: datetime | None, wanted: WindowFilter, cursor: str | None, limit: int | None) -> str:
    """Return the target of a page of the keys of the window that contains a time; None for the present time."""
    filters = [("where", f"{path}:{value}") for path, value in wanted.where.items()]
    parameters = {
        "prefix": wanted.prefix,
        "order_by": wanted.order_by,
        "fields": ",".join(wanted.fields),
        "cursor": cursor,
        "limit": limit,
    }
    return f"{state_target(state)}/windows/{quote(time_text(at) or 'now', safe='')}{query(parameters, filters)}"


def rule_test_target(table: str, key: str, cursor: str | None) -> str:
    """Return the target of the test of a rule."""
    return f"/v1/tables/{quote(table, safe='')}/{quote(key, safe='')}/test{query({'cursor': cursor})}"


def time_text(time: datetime | None) -> str | None:
    """Return the time as the service reads it. It needs an offset from UTC, or the service rejects it."""
    return None if time is None else time.isoformat()


def span_text(span: timedelta | None) -> str | None:
    """Return the span as the service reads it, in whole seconds."""
    return None if span is None else f"{round(span.total_seconds())}s"


def state_target(state: str) -> str:
    """Return the target of a state."""
    return f"{ROOT}/{quote(state, safe='')}"


def query(parameters: Mapping[str, object], more: Sequence[tuple[str, str]] = ()) -> str:
    """Return the query of a URL. A parameter without a value is left out."""
    pairs = [(name, str(value)) for name, value in parameters.items() if value is not None and value != ""]
    text = "&".join(f"{name}={quote(value, safe='')}" for name, value in [*pairs, *more])
    return f"?{text}" if text else ""
