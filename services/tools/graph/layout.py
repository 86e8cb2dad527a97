"""The layout of a layered graph, its boxes and lines: pure functions, in the units of the picture.

After Sugiyama's method: a line that crosses columns gets a place of its own in each, the order within a column follows
the neighbours' (barycentres, to and fro), and then each place is drawn towards its neighbours as far as there is room.
Parts that no line joins are laid one under the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

GAP = 18.0
SWEEPS = 24
Line = tuple[str, str]


@dataclass(frozen=True)
class Layout:
    """The columns of places from left to right, the middle of each place, and the places that a line goes through."""

    columns: list[list[str]]
    middle: dict[str, float]
    paths: dict[Line, list[str]]


def layout(column_of: Mapping[str, int], height_of: Mapping[str, float], lines: Sequence[Line]) -> Layout:
    """Lay out boxes, each in a given column and of a given height; lines go from left to right."""
    columns: list[list[str]] = [[] for _ in range(max(column_of.values(), default=-1) + 1)]
    for name, column in column_of.items():
        columns[column].append(name)
    paths = {line: _way(line, column_of, columns) for line in lines}
    before, after = _links(paths)
    heights = {name: height_of.get(name, 0.0) for column in columns for name in column}
    for _ in range(SWEEPS):
        _sort(columns[1:], columns, before)
        _sort(columns[-2::-1], columns, after)
    _sort(columns[1:], columns, before)
    middle = _settle(columns, heights, before, after)
    return Layout(columns, _stack(_parts(middle, after), middle, heights), paths)


def _way(line: Line, column_of: Mapping[str, int], columns: list[list[str]]) -> list[str]:
    """Return the positions of a line; those between its end points are created here."""
    begin, end = line
    between = [f"{begin}→{end}@{column}" for column in range(column_of[begin] + 1, column_of[end])]
    for column, place in enumerate(between, start=column_of[begin] + 1):
        columns[column].append(place)
    return [begin, *between, end]


def _links(paths: Mapping[Line, list[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for path in paths.values():
        for left, right in pairwise(path):
            before.setdefault(right, []).append(left)
            after.setdefault(left, []).append(right)
    return before, after


def _sort(sorted_columns: list[list[str]], columns: list[list[str]], links: Mapping[str, Sequence[str]]) -> None:
    """Order each column by the middle of its neighbours' ranks; one without neighbours keeps its own."""
    for column in sorted_columns:
        rank = {name: (i + 0.5) / len(names) for names in columns for i, name in enumerate(names)}
        means = {name: _mean([rank[other] for other in links.get(name, ())], rank[name]) for name in column}
        column.sort(key=means.__getitem__)


def _settle(
    columns: list[list[str]],
    heights: Mapping[str, float],
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
) -> dict[str, float]:
    """The middles: first stacked, then each column drawn to its neighbours', with what it wants as near as may be."""
    middle = {name: y for column in columns for name, y in zip(column, _stacked(column, heights), strict=True)}
    for _ in range(SWEEPS):
        for column in columns:
            wanted = {
                name: _mean([middle[other] for other in (*before.get(name, ()), *after.get(name, ()))], middle[name])
                for name in column
            }
            middle |= _spread(column, wanted, heights)
    return middle


def _parts(names: Iterable[str], after: Mapping[str, Sequence[str]]) -> list[set[str]]:
    """Return the connected components of the graph, the largest first."""
    parts = [{name} for name in names]
    for left, rights in after.items():
        joined = [part for part in parts if part & {left, *rights}]
        parts = [part for part in parts if part not in joined] + [set().union(*joined)]
    return sorted(parts, key=len, reverse=True)


def _stack(parts: list[set[str]], middle: Mapping[str, float], heights: Mapping[str, float]) -> dict[str, float]:
    """Return the components one below the other."""
    middles, top = {}, 0.0
    for part in parts:
        shift = top - min(middle[name] - heights[name] / 2 for name in part)
        middles.update({name: middle[name] + shift for name in part})
        top = max(middles[name] + heights[name] / 2 for name in part) + 2 * GAP
    return middles


def _stacked(column: list[str], heights: Mapping[str, float]) -> list[float]:
    total, middles = 0.0, []
    for name in column:
        middles.append(total + heights[name] / 2)
        total += heights[name] + GAP
    return [middle - total / 2 for middle in middles]


def _spread(column: list[str], wanted: Mapping[str, float], heights: Mapping[str, float]) -> dict[str, float]:
    """Return positions in their order and without overlap, near the wanted ones: the mean of moving down and up."""
    down, up = _pushed(column, wanted, heights, 1), _pushed(column[::-1], wanted, heights, -1)
    return {name: (down[name] + up[name]) / 2 for name in column}


def _pushed(
    column: list[str], wanted: Mapping[str, float], heights: Mapping[str, float], direction: int
) -> dict[str, float]:
    middles: dict[str, float] = {}
    for last, name in zip([None, *column], column, strict=False):
        least = wanted[name] * direction
        if last is not None:
            least = max(least, middles[last] * direction + (heights[last] + heights[name]) / 2 + GAP)
        middles[name] = least * direction
    return middles


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
