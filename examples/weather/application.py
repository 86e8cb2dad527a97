"""The application: `examples.weather.application:app`. Its rules change while it runs."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from contracts import (
    AlertRule,
    Alerts,
    Application,
    BaseEvent,
    Count,
    Latest,
    QueryOptions,
    Recent,
    State,
    Table,
    Topics,
)
from contracts.wire import Snapshot

YEAR = timedelta(days=366)
NEW_YEAR = timedelta(days=334)
"""A window of a year that begins here contains 2013."""


class StationReading(BaseEvent):
    """What a station measures each hour. The temperature is in degrees Fahrenheit, and is sometimes missing."""

    event_id: str
    airport: str
    temp: float | None = None
    wind_speed: float | None = None


class AirportWeather(State, key="airport", window=YEAR, offset=NEW_YEAR):
    """The weather at an airport."""

    readings: Annotated[int, Count(of="event_id")]
    temp: Annotated[float | None, Latest()]
    temps: Annotated[list[float], Recent(2, of="temp")]
    wind_speed: Annotated[float | None, Latest()]


class TemperatureRule(AlertRule):
    """A change of the temperature between two readings by so many degrees or more."""

    degrees: Annotated[float, Field(gt=0)]


def changed(snapshot: Snapshot, rule: TemperatureRule) -> bool:
    """Whether the last two temperatures differ by so much."""
    temps: list[float] = snapshot.state["temps"]
    return len(temps) > 1 and abs(temps[0] - temps[1]) >= rule.degrees


def weather(prefix: str = "weather_") -> Application:
    """Return the application with topics of this prefix."""
    rules = Table("temperature_rules", TemperatureRule, query=QueryOptions(history=100))
    return Application(
        name="weather",
        event=StationReading,
        state=AirportWeather,
        topics=Topics(prefix=prefix, replay=True),
        query=QueryOptions(indexes=("state.temp",)),
        tables=(rules,),
        alerts=(Alerts("temperature_changes", rules, changed, query=QueryOptions(history=100, indexes=("status",))),),
    )


app = weather()
