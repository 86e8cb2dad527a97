"""The answers of the server: looked up in the tables, or computed. None is an absence."""

from pydantic import BaseModel, ConfigDict, Field

from examples.flights import tables
from examples.flights.reference import sphere
from examples.flights.results import Aircraft, Airline, Airport, Performance, Route, Weather


class Query(BaseModel):
    """The parameters of a request. An unknown one is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RouteQuery(Query):
    """Two places, in degrees."""

    from_lat: float = Field(ge=-90, le=90)
    from_lon: float = Field(ge=-180, le=180)
    to_lat: float = Field(ge=-90, le=90)
    to_lon: float = Field(ge=-180, le=180)


class PerformanceQuery(Query):
    """One flight, with what is known of its aircraft and its wind."""

    block_minutes: float = Field(gt=0)
    air_minutes: float = Field(gt=0)
    distance_miles: float = Field(ge=0)
    bearing_deg: float
    seats: int
    cruise_mph: float | None = Field(default=None, gt=0)
    wind_mph: float | None = None
    wind_deg: float | None = None


def airline(carrier: str) -> Airline | None:
    """The airline of a carrier code."""
    row = tables.airlines().get(carrier)
    return Airline(carrier=carrier, name=row["name"]) if row else None


def airport(faa: str) -> Airport | None:
    """The airport of an FAA code."""
    row = tables.airports().get(faa)
    if row is None:
        return None
    return Airport(
        faa=faa,
        name=row["name"],
        lat=float(row["lat"]),
        lon=float(row["lon"]),
        altitude_ft=int(row["alt"]),
        time_zone=tables.text(row["tzone"]),
    )


def aircraft(tailnum: str) -> Aircraft | None:
    """The aircraft of a tail number."""
    row = tables.planes().get(tailnum)
    if row is None:
        return None
    return Aircraft(
        tailnum=tailnum,
        kind=row["type"],
        manufacturer=row["manufacturer"],
        model=row["model"],
        engine=row["engine"],
        engines=int(row["engines"]),
        seats=int(row["seats"]),
        year=tables.whole(row["year"]),
        cruise_mph=tables.number(row["speed"]),
    )


def weather(faa: str, hour: str) -> Weather | None:
    """The weather at an airport in an hour, as in 2013-01-01T06Z."""
    row = tables.weather().get((faa, hour.replace("Z", ":00:00Z")))
    if row is None:
        return None
    return Weather(
        temperature_f=tables.number(row["temp"]),
        humidity=tables.number(row["humid"]),
        wind_deg=tables.number(row["wind_dir"]),
        wind_mph=tables.number(row["wind_speed"]),
        gust_mph=tables.number(row["wind_gust"]),
        rain_in=tables.number(row["precip"]),
        pressure_mb=tables.number(row["pressure"]),
        visibility_miles=tables.number(row["visib"]),
    )


def route(query: RouteQuery) -> Route:
    """Return the great circle between two places."""
    endpoints = query.from_lat, query.from_lon, query.to_lat, query.to_lon
    return Route(distance_miles=round(sphere.distance(*endpoints), 1), bearing_deg=round(sphere.bearing(*endpoints), 1))


def performance(query: PerformanceQuery) -> Performance:
    """Return the performance of a flight."""
    speed = round(query.distance_miles * 60 / query.air_minutes, 1)
    return Performance(
        block_minutes=round(query.block_minutes),
        ground_minutes=round(query.block_minutes - query.air_minutes),
        ground_speed_mph=speed,
        seat_miles_per_hour=round(query.seats * speed, 1),
        cruise_share=None if query.cruise_mph is None else round(speed / query.cruise_mph, 3),
        headwind_mph=_headwind(query),
    )


def _headwind(query: PerformanceQuery) -> float | None:
    if query.wind_mph is None or query.wind_deg is None:
        return None
    against = sphere.headwind(query.bearing_deg, query.wind_mph, query.wind_deg)
    return round(against, 1) + 0.0  # a calm is 0.0, not -0.0
