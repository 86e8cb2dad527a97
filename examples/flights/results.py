"""The results of the enrichments and of the derived state. Miles are statute; None is a gap of the tables."""

from pydantic import AwareDatetime, BaseModel, ConfigDict

from examples.flights.event import Kind


class Result(BaseModel):
    """The base of all results."""

    model_config = ConfigDict(frozen=True)


class Airline(Result):
    """A carrier."""

    carrier: str
    name: str


class Airport(Result):
    """An airport: degrees, north and east positive, and feet above the sea."""

    faa: str
    name: str
    lat: float
    lon: float
    altitude_ft: int
    time_zone: str | None = None


class Aircraft(Result):
    """The entry of a tail number in the FAA's register."""

    tailnum: str
    kind: str
    manufacturer: str
    model: str
    engine: str
    engines: int
    seats: int
    year: int | None = None
    cruise_mph: float | None = None


class Weather(Result):
    """One airport's weather in one hour. The wind's direction is where it comes from, in degrees."""

    temperature_f: float | None = None
    humidity: float | None = None
    wind_deg: float | None = None
    wind_mph: float | None = None
    gust_mph: float | None = None
    rain_in: float | None = None
    pressure_mb: float | None = None
    visibility_miles: float | None = None


class Route(Result):
    """The great circle between two airports, on a sphere with a radius of 3958.7613 miles; rounded to one digit."""

    distance_miles: float
    bearing_deg: float
    """The bearing at the origin, clockwise from north, 0 to 360."""


class Performance(Result):
    """The performance of a flight. Rounded (half to even) to one digit; shares to three."""

    block_minutes: int
    """From departure to arrival."""
    ground_minutes: int
    """The part of it that was not in the air."""
    ground_speed_mph: float
    """The route's distance * 60 / the minutes in the air."""
    seat_miles_per_hour: float
    """The seats * the ground speed."""
    cruise_share: float | None = None
    """The ground speed / the aircraft's cruising speed."""
    headwind_mph: float | None = None
    """The wind at departure against the route's bearing: negative from behind. None when it had no direction."""


class LastFlight(Result):
    """The flight of an aircraft that was announced last. The delay is in minutes."""

    flight: str
    status: Kind | None = None
    carrier: str | None = None
    number: int | None = None
    origin: str | None = None
    dest: str | None = None
    departed_at: AwareDatetime | None = None
    landed_at: AwareDatetime | None = None
    delay: int | None = None
    manufacturer: str | None = None
    """The manufacturer of the aircraft, like the model."""
    model: str | None = None
