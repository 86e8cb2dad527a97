"""Numbers that no record can have: not finite, or integers of more than 64 bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from contracts.types.columns import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

NULL = b"null"
"""What orjson writes for a number that is not finite: JSON without it has none."""


class NumberProblem(NamedTuple):
    """A number without a form in JSON. `field` is a dotted path."""

    field: str
    detail: str


def unwritable(value: Any, path: tuple[Any, ...] = ()) -> Iterator[NumberProblem]:
    """Yield the numbers in a value, at any depth, that no record can have."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from unwritable(item, (*path, name))
    elif isinstance(value, list | tuple | set | frozenset):
        for number, item in enumerate(value):
            yield from unwritable(item, (*path, number))
    elif hasattr(value, "tolist"):
        yield from unwritable(value.tolist(), path)
    elif isinstance(value, float) and not math.isfinite(value):
        yield NumberProblem(".".join(map(str, path)), "is not a finite number")
    elif isinstance(value, int) and not -LONG <= value < LONG:
        yield NumberProblem(".".join(map(str, path)), "is an integer of more than 64 bits")
