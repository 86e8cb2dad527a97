"""Builds the path and query of a URL. Keys and values are percent-encoded, slashes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    deadline: float
    """The limit of all attempts together; by default that of the client."""


def key_target(state: str, key: str, options: ReadOptions, rest: str = "") -> str:
    """Of one key."""
    event = options.get("min_offset")
    given = {
        "fields": ",".join(options.get("fields", ())),
        "min_version": options.get("min_version"),
        "min_offset": None if event is None else f"{event[0]}:{event[1]}",
        "wait": options.get("wait"),
        "as_of": options.get("as_of"),
    }
    return f"{state_target(state)}/{quote(key, safe='')}{rest}{query(given)}"


def page_target(state: str, prefix: str, where: Mapping[str, str], after: str | None, limit: int | None) -> str:
    """Of a page of keys."""
    filters = [("where", f"{path}:{value}") for path, value in where.items()]
    return state_target(state) + query({"prefix": prefix, "after": after, "limit": limit}, filters)


def state_target(state: str) -> str:
    """Of a state."""
    return f"{ROOT}/{quote(state, safe='')}"


def query(given: Mapping[str, object], more: Sequence[tuple[str, str]] = ()) -> str:
    """The query of a URL, without what is not given."""
    pairs = [(name, str(value)) for name, value in given.items() if value is not None and value != ""]
    text = "&".join(f"{name}={quote(value, safe='')}" for name, value in [*pairs, *more])
    return f"?{text}" if text else ""
