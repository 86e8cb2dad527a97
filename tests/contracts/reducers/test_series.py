"""Series: where the samples of a chunk are, gaps, repetitions and overlaps, and what is refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Application, DeclarationError, Event, Series, State
from contracts.records.named_states import named

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Chunk(Event):
    samples: list[int]


class Blob(State, window=10 * SECOND):
    samples: Annotated[list[int | None], Series(rate=100, unit="mV")]


def published(reducer: Series, *chunks: tuple[list[Any], float]) -> list[Any]:
    """Return the published value of chunks, each at a number of seconds after the window's start."""
    partials = [reducer.lift(samples, START + timedelta(seconds=at), START) for samples, at in chunks]
    samples = reducer.present(reduce(reducer.merge, partials) if partials else None)
    assert isinstance(samples, list)
    return samples


def test_gaps_are_nulls_up_to_the_last_sample() -> None:
    series = Series(4).within(5 * SECOND)
    assert published(series) == []
    assert published(series, ([5, 6], 1), ([1, 2], 0), ([None, 9], 2.5)) == [1, 2, None, None, 5, 6, *[None] * 5, 9]


def test_a_position_is_rounded_to_the_nearest_sample() -> None:
    series = Series(117).within(10 * SECOND)
    chunks = [([number] * 117, number + jitter) for number, jitter in ((0, 0.0), (1, 0.004), (2, -0.004), (3, 0.0))]
    assert published(series, *chunks) == [number for number in range(4) for _ in range(117)]


def test_of_overlapping_chunks_the_one_that_starts_first_wins() -> None:
    series = Series(1).within(10 * SECOND)
    assert published(series, ([7, 7, 7], 1), ([1, 2, 3], 0)) == [1, 2, 3, 7]
    assert published(series, ([9, 9], 0), ([1, 2, 3], 0)) == [1, 2, 3]
    assert published(series, ([1, 2, 3, 4], 0), ([5], 1)) == [1, 2, 3, 4]


def test_a_chunk_belongs_to_the_window_of_its_first_sample() -> None:
    series = Series(2).within(2 * SECOND)
    assert published(series, ([1, 2, 3], 1.5), ([4], 2), ([5], -0.5)) == [None, None, None, 1, 2, 3]
    assert published(series, (list(range(9)), 0)) == [0, 1, 2, 3]


@given(st.permutations(range(10)), st.sets(st.integers(0, 9)), st.lists(st.integers(0, 9), max_size=5))
def test_any_order_of_chunks_gives_the_samples(order: list[int], lost: set[int], repeated: list[int]) -> None:
    series = Series(3).within(10 * SECOND)
    samples = {second: [3 * second, 3 * second + 1, 3 * second + 2] for second in range(10) if second not in lost}
    result = published(series, *[(samples[second], second) for second in [*order, *repeated] if second in samples])
    expected = [number if number // 3 in samples else None for number in range(3 * (max(samples, default=-1) + 1))]
    assert result == expected


def test_a_consumer_finds_rate_and_unit_in_the_schema() -> None:
    app = Application(name="blobs", event=Chunk, state=Blob)
    schema = named(app)["blobs"].schema["$defs"]["Blob"]["properties"]["samples"]
    assert (schema["x-rate-hz"], schema["x-unit"]) == (100, "mV")


class Long(State, window=timedelta(minutes=10)):
    samples: Annotated[list[int | None], Series(rate=100)]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Series(0), "Write a number up to"),
        (lambda: Series(0.01).within(SECOND), "Write a longer window"),
        (lambda: Application(name="b", event=Chunk, state=Long), "Write a shorter window"),
    ],
)
def test_a_series_that_cannot_be_is_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()


@pytest.mark.parametrize("source", [int, list[str], str])
def test_a_field_that_is_no_list_of_numbers_is_refused(source: Any) -> None:
    with pytest.raises(TypeError, match="list"):
        Series(1).gives(source)


def test_a_series_gives_numbers_or_nulls() -> None:
    assert Series(1).gives(list[int | None] | None) == list[int | None]
    assert Series(1).gives(list[float]) == list[float | None]
