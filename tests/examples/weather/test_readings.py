"""The events of the weather stations against the table that they come from."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from examples.flights import tables
from examples.weather.readings import readings
from tests.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


def test_each_row_of_the_table_is_a_reading_in_the_order_of_time() -> None:
    found = list(readings())
    rows = pd.DataFrame(tables.weather().values())
    assert [one.ts for one in found] == sorted(one.ts for one in found)
    assert len({one.event_id for one in found}) == len(rows)
    temperatures = pd.to_numeric(rows["temp"], errors="coerce")
    keys = zip(rows["origin"], pd.to_datetime(rows["time_hour"]), strict=True)
    expected: dict[Any, Any] = dict(zip(keys, temperatures, strict=True))
    missing = {key for key, value in expected.items() if pd.isna(value)}
    given = {(one.station, one.ts): one.temperature for one in found}
    assert {key for key, value in given.items() if value is None} == missing
    assert {key: given[key] for key in given.keys() - missing} == {key: expected[key] for key in given.keys() - missing}
    assert Counter(one.station for one in found) == {"JFK": 8706, "LGA": 8706, "EWR": 8703}


def test_a_station_has_one_first_reading() -> None:
    found = list(readings())
    assert all(one.first_seen <= one.ts for one in found)
    assert {one.first_seen for one in found} == {min(one.ts for one in found)}
