"""Coverage: which steps an event covers, what is published, and what is refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import pairwise
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Application, Count, Coverage, DeclarationError, Event, State
from contracts.records.named_states import named

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


class Chunk(Event):
    samples: list[float]


class Vitals(State, lifetime=HOUR):
    covered: Annotated[list[list[int]], Coverage(SECOND, of="samples", rate=100)]


def published(reducer: Coverage, *values: tuple[Any, float]) -> list[list[int]]:
    """Return the published value of values, each at a number of seconds after the window's start."""
    partials = [reducer.lift(value, START + timedelta(seconds=at), START) for value, at in values]
    return reducer.present(reduce(reducer.merge, partials) if partials else None)


def test_a_gap_is_between_two_spans() -> None:
    coverage = Coverage(SECOND).within(HOUR)
    assert published(coverage) == []
    assert published(coverage, ("", 3), ("", 0), ("", 1.999999), ("", 3.5)) == [[0, 2], [3, 4]]
    assert published(coverage, *[("", at) for at in range(3600)]) == [[0, 3600]]


def test_an_event_covers_all_steps_that_its_span_is_in() -> None:
    assert published(Coverage(SECOND, duration=SECOND).within(HOUR), ("", 5)) == [[5, 6]]
    assert published(Coverage(SECOND, duration=SECOND).within(HOUR), ("", 5.000001)) == [[5, 7]]
    samples = Coverage(SECOND, of="samples", rate=100).within(HOUR)
    assert published(samples, ([0.0] * 300, 5), ([], 9), ([0.0], 10)) == [[5, 8], [10, 11]]
    milliseconds = Coverage(SECOND, of="took", unit=timedelta(milliseconds=1)).within(HOUR)
    assert published(milliseconds, (2000, 5), (0, 8), (-1, 9), (1, 10), (1e300, 3598)) == [
        [5, 7],
        [10, 11],
        [3598, 3600],
    ]


def test_only_the_window_is_covered() -> None:
    coverage = Coverage(SECOND, duration=2 * SECOND).within(timedelta(seconds=10.5))
    assert published(coverage, ("", -1), ("", 9), ("", 10.5), ("", 12), ("", -5)) == [[0, 1], [9, 11]]


@given(st.lists(st.integers(0, 99), max_size=30))
def test_the_spans_are_the_runs_of_covered_steps(seconds: list[int]) -> None:
    spans = published(Coverage(SECOND).within(timedelta(seconds=100)), *[("", at) for at in seconds])
    assert [step for low, end in spans for step in range(low, end)] == sorted(set(seconds))
    assert all(end < low for (_, end), (low, _) in pairwise(spans))
    assert published(Coverage(SECOND).within(timedelta(seconds=100)), *[("", at) for at in 2 * seconds]) == spans


def test_a_consumer_finds_the_step_in_the_schema_and_in_the_declaration() -> None:
    app = Application(name="vitals", event=Chunk, state=Vitals)
    assert named(app)["vitals"].schema["$defs"]["Vitals"]["properties"]["covered"]["x-step-s"] == 1
    covered = app.reducers["covered"]
    assert isinstance(covered, Coverage)
    assert (covered.step, covered.steps) == (SECOND, 3600)


def test_the_largest_value_is_that_of_every_second_step() -> None:
    coverage = Coverage(SECOND).within(timedelta(seconds=1001))
    spans = published(coverage, *[("", at) for at in range(0, 1001, 2)])
    assert 0.8 * coverage.largest < len(str(spans).replace(" ", "")) <= coverage.largest


class Fine(State, window=timedelta(hours=1)):
    covered: Annotated[list[list[int]], Coverage(SECOND)]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Coverage(timedelta(0)), "Write timedelta"),
        (lambda: Coverage(SECOND, duration=-SECOND), "Write timedelta"),
        (lambda: Coverage(SECOND, rate=0), "Write a number up to"),
        (lambda: Coverage(SECOND, rate=1, unit=SECOND), "Write one of duration=, rate= and unit="),
        (lambda: Coverage(SECOND).within(timedelta(days=1)), "86400 steps .* Write a step of 0:00:21.093750 or more"),
        (lambda: Application(name="v", event=Chunk, state=Fine, largest_record=8 * 1024), "Write a shorter window"),
    ],
)
def test_a_coverage_that_cannot_be_is_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()


@pytest.mark.parametrize(("reducer", "source"), [(Coverage(SECOND, rate=1), int), (Coverage(SECOND, unit=SECOND), str)])
def test_a_field_without_the_type_of_its_span_is_refused(reducer: Coverage, source: Any) -> None:
    with pytest.raises(TypeError):
        reducer.gives(source)


def test_the_window_is_that_of_the_state() -> None:
    with pytest.raises(TypeError, match="call within"):
        Coverage(SECOND).lift("", START, START)
    assert Count().within(HOUR) == Count()
