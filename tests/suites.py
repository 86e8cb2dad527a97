"""Three applications over one topic of events, each with another time at which it emits."""

import os
from datetime import timedelta
from typing import Annotated, NamedTuple

from contracts import Application, Count, Emit, Event, Latest, State, Suite, Sum, Topics


class Trip(Event):
    """A trip with a price, in whole cents."""

    cents: int


class Total(State, lifetime=timedelta(hours=1)):
    """The counts of a device."""

    trips: Annotated[int, Count()]
    cents: Annotated[int, Sum()]
    last: Annotated[int | None, Latest(of="cents")]


class Bill(State, lifetime=timedelta(seconds=20), grace=timedelta(seconds=1)):
    """The same, of a short window."""

    trips: Annotated[int, Count()]
    cents: Annotated[int, Sum()]


class Three(NamedTuple):
    """The applications of the suite."""

    totals: Application
    newest: Application
    bills: Application


def three(prefix: str) -> Three:
    """Declare the applications, with topics that no other test has."""

    def topics(name: str) -> Topics:
        return Topics(prefix=f"{prefix}{name}.", events=f"{prefix}events", partitions=2)

    return Three(
        totals=Application(name="totals", event=Trip, state=Total, topics=topics("totals")),
        newest=Application(
            name="newest",
            event=Trip,
            state=Total,
            topics=topics("newest"),
            emit=Emit.BATCH,
            emit_interval=timedelta(seconds=4),
        ),
        bills=Application(
            name="bills",
            event=Trip,
            state=Bill,
            topics=topics("bills"),
            skew=timedelta(seconds=1),
            emit=Emit.CLOSE,
            emit_interval=timedelta(seconds=2),
        ),
    )


suite = Suite(*three(os.environ.get("SUITE_PREFIX", "")))
