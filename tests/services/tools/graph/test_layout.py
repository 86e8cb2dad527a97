from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.tools.graph.layout import GAP, Layout, layout

HEIGHT = 40.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, int], list[tuple[str, str]]]:
    column_of = {f"n{number}": draw(st.integers(0, 4)) for number in range(draw(st.integers(1, 12)))}
    pairs = [(left, right) for left in column_of for right in column_of if column_of[left] < column_of[right]]
    lines = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return column_of, lines


@given(graphs())
def test_no_place_lies_on_another_and_every_line_goes_from_column_to_column(
    graph: tuple[dict[str, int], list[tuple[str, str]]],
) -> None:
    column_of, lines = graph
    heights = dict.fromkeys(column_of, HEIGHT)
    placed = layout(column_of, heights, lines)
    where = {name: column for column, names in enumerate(placed.columns) for name in names}
    assert {name: where[name] for name in column_of} == column_of
    for names in placed.columns:
        for above, below in pairwise(sorted(names, key=placed.middle.__getitem__)):
            room = (heights.get(above, 0) + heights.get(below, 0)) / 2 + GAP
            assert placed.middle[below] - placed.middle[above] >= room - 1e-6
    for line, path in placed.paths.items():
        assert (path[0], path[-1]) == line
        assert [where[place] for place in path] == list(range(column_of[line[0]], column_of[line[1]] + 1))


def crossings(placed: Layout, left: int) -> int:
    segments = [
        (placed.middle[left_place], placed.middle[right_place])
        for path in placed.paths.values()
        for left_place, right_place in pairwise(path)
        if left_place in placed.columns[left]
    ]
    return sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(segments) for c, d in segments[i + 1 :])


def test_lines_that_need_not_cross_do_not() -> None:
    names = {f"a{n}": 0 for n in range(6)} | {f"b{n}": 1 for n in range(6)}
    placed = layout(names, dict.fromkeys(names, HEIGHT), [(f"a{n}", f"b{5 - n}") for n in range(6)] + [("a0", "b4")])
    assert crossings(placed, 0) == 0
