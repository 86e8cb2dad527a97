"""The counts of each key in each hour, declared as applications: one for each backlog and kind of publishing."""

from datetime import timedelta
from typing import Annotated

from bench.harness.topics import PARTITIONS
from contracts import Application, BaseEvent, Count, Emit, State
from contracts.model.topics import Topics


class KeyedEvent(BaseEvent):
    """An event, as far as counting needs it."""

    device_id: str


class HourlyCount(State, key="device_id", window=timedelta(hours=1)):
    """The events of a key in an hour."""

    count: Annotated[int, Count()]


def _application(backlog: str, emit: Emit) -> Application:
    topics = Topics(prefix=f"{backlog}.", replay=True, partitions=PARTITIONS)
    return Application(name="views", event=KeyedEvent, state=HourlyCount, topics=topics, deduplicate=False, emit=emit)


long_event, short_event = (_application(backlog, Emit.EVENT) for backlog in ("long", "short"))
long_batch, short_batch = (_application(backlog, Emit.BATCH) for backlog in ("long", "short"))
