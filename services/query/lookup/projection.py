"""A part of a record's value, by paths."""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

import orjson

from services.query.lookup.problem import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse_paths(fields: str) -> list[tuple[str, ...]]:
    """The paths of `fields=`."""
    return [tuple(path.split(".")) for path in fields.split(",")]


def project(value: bytes, wanted: Sequence[tuple[str, ...]]) -> bytes:
    """What the JSON object has at these paths, each where it was. A path that is not there is left out.

    Read by the standard library: another parser would give a number above 2**64 as a float. It does not read what is
    nested some hundreds of levels deep. Raises ProblemError (400) for that.
    """
    found: dict[str, Any] = {}
    try:
        whole = json.loads(value)
        for path in wanted:
            _put(found, whole, path)
        return json.dumps(found, separators=(",", ":")).encode()
    except RecursionError:
        raise ProblemError(
            Problem("bad_request", "The value is nested too deep for fields=: ask for all of it")
        ) from None


def integer_at(value: bytes, path: Sequence[str]) -> int | None:
    """The whole number that the JSON object has at this path; None where it has none."""
    found = reduce(lambda level, name: level.get(name) if isinstance(level, dict) else None, path, orjson.loads(value))
    return found if type(found) is int else None


def _put(into: dict[str, Any], whole: Any, path: tuple[str, ...]) -> None:
    levels = [whole]
    for name in path:
        if not isinstance(levels[-1], dict) or name not in levels[-1]:
            return
        levels.append(levels[-1][name])
    for name, level in zip(path[:-1], levels[1:], strict=False):
        into = into.setdefault(name, {})
        if into is level:  # it is there as a whole already
            return
    into[path[-1]] = levels[-1]
