from datetime import date
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.flights import tables
from examples.flights.event import FlightEvent, history
from examples.flights.flight import flight
from examples.flights.stream import begin, place, stream, stream_after

DAYS = tables.days(date(2013, 2, 7), 4)  # with the blizzard of the 8th, and landings on the next day


@cache
def events() -> list[FlightEvent]:
    return list(stream(DAYS))


def test_the_stream_is_in_order_and_whole() -> None:
    every = [event for day in DAYS for row in tables.flights(day) for event in history(flight(row))]
    assert sorted(every, key=place) == events()
    assert len({place(event) for event in events()}) == len(events())


@pytest.mark.parametrize("day", tables.days(date(2013, 1, 1), 365)[::7])
def test_no_event_is_before_its_day_begins(day: date) -> None:
    assert next(iter(stream([day]))).ts >= begin(day)


def test_all_of_it_follows_the_beginning() -> None:
    assert list(stream_after(DAYS, None)) == events()


@settings(deadline=None, max_examples=25)
@given(st.deferred(lambda: st.integers(0, len(events()) - 1)))
def test_the_stream_after_a_position_is_the_rest(index: int) -> None:
    rest = stream_after(DAYS, place(events()[index]))
    assert next(rest, None) == next(iter(events()[index + 1 : index + 2]), None)


def test_the_rest_is_the_same_to_the_end() -> None:
    assert list(stream_after(DAYS, place(events()[-2000]))) == events()[-1999:]
