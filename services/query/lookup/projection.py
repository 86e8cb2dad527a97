"""Selects parts of a record's value by dotted paths."""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

import orjson

from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse_paths(fields: str) -> list[tuple[str, ...]]:
    """The paths in the parameter `fields`."""
    return [tuple(path.split(".")) for path in fields.split(",")]


def project(value: bytes, paths: Sequence[tuple[str, ...]]) -> bytes:
    """The members of the JSON object at these paths, each at its place. A path that is absent is left out.

    The standard library parses it: orjson turns an integer above 2**64 into a float. It does not parse values that are
    nested some hundreds of levels deep: raises ProblemError (400) for these.
    """
    found: dict[str, Any] = {}
    try:
        whole = json.loads(value)
        for path in paths:
            _copy(found, whole, path)
        return json.dumps(found, separators=(",", ":")).encode()
    except RecursionError:
        raise ProblemError(
            Problem("bad_request", "The value is nested too deep for fields=: request all of it")
        ) from None


def integer_at(value: bytes, path: Sequence[str]) -> int | None:
    """The integer that the JSON object has at this path; None if there is none."""
    found = reduce(lambda level, name: level.get(name) if isinstance(level, dict) else None, path, orjson.loads(value))
    return found if type(found) is int else None


def _copy(into: dict[str, Any], whole: Any, path: tuple[str, ...]) -> None:
    levels = [whole]
    for name in path:
        if not isinstance(levels[-1], dict) or name not in levels[-1]:
            return
        levels.append(levels[-1][name])
    for name, level in zip(path[:-1], levels[1:], strict=False):
        into = into.setdefault(name, {})
        if into is level:  # another path has copied all of it
            return
    into[path[-1]] = levels[-1]
