"""Builds the target of a call from a path template and values. A value never leaves its segment or parameter."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from contracts import PermanentCallError
from contracts.model.enrichment import unfilled

if TYPE_CHECKING:
    from contracts import Batch

PLACE = re.compile(r"\{([^{}]*)\}")
FORBIDDEN = re.compile(r"[\\\x00-\x1f\x7f-\x9f]")
"""Backslashes and control characters."""
PLAIN = re.compile(r"[A-Za-z0-9_~-]+")
"""Values that need no encoding and contain no dots."""
DOTS = frozenset({".", ".."})


def target(template: str, values: dict[str, str | float]) -> str:
    """The path and query: `{name}` takes the value of that name, and the other values become the query.

    Raises ValueError for a template that is no path, DeclarationError for one with a name that has no value, and
    PermanentCallError for a value that cannot be sent.
    """
    segments, names = _declared(template)
    if missing := [name for name in names if name not in values]:
        raise unfilled(template, missing[0])
    encoded = {name: _encoded(name, value, within=name in names) for name, value in values.items()}
    path = "/".join([_filled(segment, encoded) if segment.names else segment.text for segment in segments])
    if len(values) == len(names):
        return path
    query = "&".join(f"{quote(name, safe='')}={encoded[name]}" for name in values if name not in names)
    return f"{path}?{query}"


class _Segment(NamedTuple):
    text: str
    literals: tuple[str, ...]
    """The text before each placeholder, and after the last."""
    names: tuple[str, ...]
    """The names of its placeholders."""


@cache
def _declared(template: str) -> tuple[tuple[_Segment, ...], tuple[str, ...]]:
    """Return the segments of a path, and the names of all its placeholders. Raises ValueError for a wrong path."""
    if not template.startswith("/") or re.search(r"[?#\s]", template):
        raise ValueError(f"the path {template!r} must begin with / and hold no ? and #: give further values by name")
    split = [(text, PLACE.split(text)) for text in template.split("/")]
    segments = tuple(_Segment(text, tuple(parts[::2]), tuple(parts[1::2])) for text, parts in split)
    return segments, tuple(dict.fromkeys(name for segment in segments for name in segment.names))


def batch_target(batch: Batch[Any], keys: list[str]) -> str:
    """The path and query of a call for many keys. Raises PermanentCallError for one that cannot be sent."""
    encoded = [_encoded(batch.parameter, key) for key in keys]
    name = quote(batch.parameter, safe="")
    if batch.separator is None:
        return f"{batch.path}?{'&'.join(f'{name}={key}' for key in encoded)}"
    if any(batch.separator in key for key in keys):
        raise PermanentCallError(f"a key holds {batch.separator!r}, which stands between the keys")
    return f"{batch.path}?{name}={quote(batch.separator, safe='').join(encoded)}"


def _filled(segment: _Segment, encoded: dict[str, str]) -> str:
    """Return one segment of the path. Dots alone would climb (also encoded: RFC 3986, 6.2.2), nothing would skip."""
    before, *after = segment.literals
    filled = before + "".join([encoded[name] + text for name, text in zip(segment.names, after, strict=True)])
    if filled in ("", ".", ".."):
        raise PermanentCallError(f"{segment.text} is {filled!r}, which cannot be a segment of a path")
    return filled


def _encoded(name: str, value: str | float, *, within: bool = False) -> str:
    """A value as it is sent, in a segment of the path or in the query."""
    if type(value) is int or (type(value) is str and PLAIN.fullmatch(value)):
        return str(value)  # most values; the further checks cost as much as planning a call
    if within:
        _check_segment(name, str(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        raise PermanentCallError(f"{name} is not a finite number")
    try:
        return quote(str(value), safe="")
    except UnicodeEncodeError as error:
        raise PermanentCallError(f"{name} is not valid Unicode") from error


def _check_segment(name: str, value: str) -> None:
    """Raise for characters that a server may take for a separator or a parent folder after repeated decoding."""
    if FORBIDDEN.search(value) or not DOTS.isdisjoint(value.split("/")):
        raise PermanentCallError(f"{name} holds what cannot be in a segment of a path")
