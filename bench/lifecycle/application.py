"""The state before and after a change: `bench.lifecycle.application:before`, and `after`."""

from datetime import timedelta
from typing import Annotated

from bench.harness.topics import PARTITIONS
from contracts import Application, Count, Event, Latest, Max, Mean, State
from contracts.model.topics import Topics


class LifecycleReading(Event):
    """An event, as far as the state needs it."""

    temperature: float


class Before(State, lifetime=timedelta(days=1)):
    """The state of a device."""

    events: Annotated[int, Count()]
    t_last: Annotated[float | None, Latest(of="temperature")]
    t_mean: Annotated[float | None, Mean(of="temperature")]


class After(State, lifetime=timedelta(days=1)):
    """The same with a renamed field, without the mean, and with the largest temperature since the beginning."""

    readings: Annotated[int, Count()]
    t_last: Annotated[float | None, Latest(of="temperature")]
    t_max: Annotated[float | None, Max(of="temperature")]


def _application(state: type[State]) -> Application:
    topics = Topics(replay=True, partitions=PARTITIONS)
    return Application(name="lifecycle", event=LifecycleReading, state=state, topics=topics, deduplicate=False)


before, after = _application(Before), _application(After)
