from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.flights import tables
from examples.flights.event import history
from examples.flights.flight import flight
from examples.flights.stream import begin, place, stream, stream_after

DAYS = tables.days(date(2013, 2, 7), 4)  # with the blizzard of the 8th, and landings on the next day
EVENTS = list(stream(DAYS))


def test_the_stream_is_in_order_and_whole() -> None:
    every = [event for day in DAYS for row in tables.flights(day) for event in history(flight(row))]
    assert sorted(every, key=place) == EVENTS
    assert len({place(event) for event in EVENTS}) == len(EVENTS)


@pytest.mark.parametrize("day", tables.days(date(2013, 1, 1), 365)[::7])
def test_no_event_is_before_its_day_begins(day: date) -> None:
    assert next(iter(stream([day]))).ts >= begin(day)


def test_all_of_it_follows_the_beginning() -> None:
    assert list(stream_after(DAYS, None)) == EVENTS


@settings(deadline=None, max_examples=25)
@given(st.integers(0, len(EVENTS) - 1))
def test_what_follows_a_place_is_the_rest(index: int) -> None:
    rest = stream_after(DAYS, place(EVENTS[index]))
    assert next(rest, None) == next(iter(EVENTS[index + 1 : index + 2]), None)


def test_the_rest_is_the_same_to_the_end() -> None:
    assert list(stream_after(DAYS, place(EVENTS[-2000]))) == EVENTS[-1999:]
