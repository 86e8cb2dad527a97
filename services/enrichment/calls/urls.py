"""From a path template and values to the target of a call. Values never get beyond their segment or parameter."""

from __future__ import annotations

import math
import re
from urllib.parse import quote

from contracts import PermanentFailure

PLACE = re.compile(r"\{([^{}]*)\}")


def target(template: str, values: dict[str, str | float]) -> str:
    """The path and query: `{name}` takes the value of that name, and the other values become the query.

    Raises ValueError for a template that is declared wrongly, PermanentFailure for a value that cannot be sent.
    """
    names = PLACE.findall(template)
    if not template.startswith("/") or re.search(r"[?#\s]", template):
        raise ValueError(f"the path {template!r} must begin with / and hold no ? and #: give further values by name")
    if missing := [name for name in names if name not in values]:
        raise ValueError(f"the path {template!r} needs a value for {missing[0]!r}")
    encoded = {name: _encoded(name, value) for name, value in values.items()}
    path = "/".join(_segment(part, encoded) for part in template.split("/"))
    query = "&".join(f"{quote(name, safe='')}={encoded[name]}" for name in values if name not in names)
    return f"{path}?{query}" if query else path


def _segment(part: str, encoded: dict[str, str]) -> str:
    """One segment of the path. Dots alone would climb (also percent-encoded: RFC 3986, 6.2.2), nothing would skip."""
    filled = PLACE.sub(lambda found: encoded[found[1]], part)
    if filled != part and filled in ("", ".", ".."):
        raise PermanentFailure(f"{part} is {filled!r}, which cannot be a segment of a path")
    return filled


def _encoded(name: str, value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        raise PermanentFailure(f"{name} is not a finite number")
    try:
        return quote(str(value), safe="")
    except UnicodeEncodeError as error:
        raise PermanentFailure(f"{name} is not valid Unicode") from error
