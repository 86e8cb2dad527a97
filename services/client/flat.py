"""A record's value as rows of a table, and what of it has changed: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEPTH = 2
"""Objects below are shown as their JSON."""


def rows(value: Any, depth: int = DEPTH) -> dict[str, str]:
    """The text of each field by its dotted path, as one filters by it. What is null is left out."""
    return dict(_rows(value, "", depth)) if isinstance(value, dict) else {"": text(value)}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The fields that differ, with the text before and now; an empty one where it is not there."""
    names = dict.fromkeys((*now, *before))
    return {
        name: (before.get(name, ""), now.get(name, "")) for name in names if before.get(name, "") != now.get(name, "")
    }


def text(value: Any) -> str:
    """A value in one line: a string as it is, all else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _rows(value: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, one in value.items():
        if isinstance(one, dict) and one and depth:
            yield from _rows(one, f"{above}{name}.", depth - 1)
        elif one is not None:
            yield above + name, text(one)
