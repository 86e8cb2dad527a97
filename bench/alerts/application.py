"""The state with alerts that is measured: `bench.alerts.application:app`."""

from datetime import timedelta
from typing import Annotated

from bench.harness.topics import PARTITIONS
from contracts import AlertRule, Alerts, Application, Count, Event, Latest, Recent, State, Table
from contracts.model.topics import Topics
from contracts.wire import Snapshot


class TemperatureReading(Event):
    """An event, as far as the alerts need it."""

    temperature: float


class Temperatures(State, lifetime=timedelta(days=1)):
    """The last temperatures of a device."""

    events: Annotated[int, Count()]
    temperature: Annotated[float | None, Latest()]
    temperatures: Annotated[list[float], Recent(2, of="temperature")]


class Limit(AlertRule):
    """A change between two temperatures by so much or more, or a temperature of so much or more."""

    change: float | None = None
    above: float | None = None


def is_exceeded(snapshot: Snapshot, limit: Limit) -> bool:
    """Whether the last temperature is too high, or too far from the one before."""
    if limit.above is not None and snapshot.state["temperature"] >= limit.above:
        return True
    last = snapshot.state["temperatures"]
    return limit.change is not None and len(last) > 1 and abs(last[0] - last[1]) >= limit.change


limits = Table("limits", Limit)
app = Application(
    name="alerts",
    event=TemperatureReading,
    state=Temperatures,
    topics=Topics(replay=True, partitions=PARTITIONS),
    deduplicate=False,
    tables=(limits,),
    alerts=(Alerts("changes", limits, is_exceeded),),
)
