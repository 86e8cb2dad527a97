"""Hours of patients with their coverage and without it, as applications: one for each backlog, and one to query."""

from datetime import timedelta
from typing import Annotated

from bench.harness.topics import PARTITIONS
from bench.windows.application import KeyedEvent
from contracts import Application, Count, Coverage, State, Topics

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


class CoveredHour(State, key="device_id", window=HOUR):
    """The events of a patient in an hour, and the seconds that have one."""

    count: Annotated[int, Count()]
    covered: Annotated[list[list[int]], Coverage(SECOND)]


class CountedHour(State, key="device_id", window=HOUR):
    """The events of a patient in an hour."""

    count: Annotated[int, Count()]


def _application(backlog: str, state: type[State]) -> Application:
    topics = Topics(prefix=f"{backlog}.", replay=True, partitions=PARTITIONS)
    return Application(name="hours", event=KeyedEvent, state=state, topics=topics, deduplicate=False)


long_covered, short_covered = (_application(backlog, CoveredHour) for backlog in ("long", "short"))
long_counted, short_counted = (_application(backlog, CountedHour) for backlog in ("long", "short"))
queried = Application(
    name="hours",
    event=KeyedEvent,
    state=CoveredHour,
    topics=Topics(prefix="queried.", partitions=PARTITIONS),
    deduplicate=False,
)
