"""The application: `examples.weather.application:app`. Its rules change while it runs."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from examples.weather.readings import Reading
from stateloop import (
    AlertRule,
    Alerts,
    Application,
    Count,
    Latest,
    QueryOptions,
    Recent,
    Snapshot,
    State,
    Table,
    Topics,
    Webhook,
)

YEAR = timedelta(days=366)


class StationWeather(State, key="station", lifetime=YEAR):
    """The weather at a station."""

    readings: Annotated[int, Count(of="event_id")]
    temperature: Annotated[float | None, Latest()]
    temperatures: Annotated[list[float], Recent(2, of="temperature")]
    wind_speed: Annotated[float | None, Latest()]


class TemperatureRule(AlertRule):
    """A change of the temperature between two readings by `degrees` or more."""

    degrees: Annotated[float, Field(gt=0)]


def changed(snapshot: Snapshot, rule: TemperatureRule) -> bool:
    """Whether the last two temperatures differ by so much."""
    last: list[float] = snapshot.state["temperatures"]
    return len(last) > 1 and abs(last[0] - last[1]) >= rule.degrees


def weather(prefix: str = "weather_", webhook: Webhook | None = None) -> Application:
    """Return the application with topics of this prefix. A webhook receives the alerts."""
    query = QueryOptions(history=100, indexes=("status",))
    rules = Table("temperature_rules", TemperatureRule, query=QueryOptions(history=100))
    return Application(
        name="weather",
        event=Reading,
        state=StationWeather,
        topics=Topics(prefix=prefix, replay=True),
        deduplicate=False,  # snapshots in the order of the readings: the rules compare one with the next
        query=QueryOptions(indexes=("state.temperature",)),
        tables=(rules,),
        alerts=(Alerts("temperature_changes", rules, changed, query=query, webhook=webhook),),
    )


app = weather()
notifying = weather(webhook=Webhook("reference", "/alerts"))
"""The same with a webhook: `examples.weather.reference` receives the alerts."""
