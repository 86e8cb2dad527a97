"""Flattens values into rows of a table, and finds the rows that changed: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEPTH = 2
"""Deeper objects are formatted as JSON."""


def rows(value: Any, depth: int = DEPTH) -> dict[str, str]:
    """Return the text of each field by its dotted path, without nulls."""
    return dict(_rows(value, "", depth)) if isinstance(value, dict) else {"": text(value)}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the fields that differ, with the text before and after; empty where the field is absent."""
    names = dict.fromkeys((*now, *before))
    return {
        name: (before.get(name, ""), now.get(name, "")) for name in names if before.get(name, "") != now.get(name, "")
    }


def text(value: Any) -> str:
    """Return a value in one line: a string as it is, all else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _rows(value: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, member in value.items():
        if isinstance(member, dict) and member and depth:
            yield from _rows(member, f"{above}{name}.", depth - 1)
        elif member is not None:
            yield above + name, text(member)
