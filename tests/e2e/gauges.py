"""Gauges with alerts: of devices, which send the start of their window, and in windows of some seconds."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AwareDatetime, BaseModel

from contracts import AlertRule, Alerts, Application, BaseEvent, Count, Derived, Emit, Latest, State, Table, Topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contracts.wire import Snapshot

SECOND = timedelta(seconds=1)
KEYS = "g*"
"""The keys that the rules apply to: not the records that only close segments."""


class Reading(BaseEvent):
    """A measurement of a gauge."""

    device_id: str
    first_seen: AwareDatetime
    value: int


class Gauge(State, lifetime=timedelta(hours=2), grace=30 * SECOND):
    """The last measurement."""

    value: Annotated[int | None, Latest()]


class Span(State, window=4 * SECOND, every=2 * SECOND, grace=SECOND):
    """The number of measurements in each span of time. It is over before the next but one ends."""

    readings: Annotated[int, Count(of="value")]


class Limit(AlertRule):
    """An alert opens at `high`, and closes below."""

    high: int


class Factor(BaseModel):
    """What readings count."""

    times: int


class Weight(BaseModel):
    """The readings of a gauge in a span, times the factor."""

    weight: int


def above(snapshot: Snapshot, limit: Limit) -> bool:
    """The value of a gauge is too high, or a span has too many readings."""
    return int(snapshot.state.get("value", snapshot.state.get("readings", 0))) >= limit.high


def weights(snapshot: Snapshot, tables: Mapping[str, Mapping[str, BaseModel]]) -> Iterator[tuple[str, Weight]]:
    """The weight of a gauge."""
    factor = tables["factors"]["all"]
    if isinstance(factor, Factor):
        yield snapshot.device_id, Weight(weight=factor.times * int(snapshot.state["readings"]))


limits, factors = Table("limits", Limit), Table("factors", Factor)


def application(state: type[State], **options: Any) -> Application:
    """The application with this state."""
    topics = Topics(prefix=os.environ.get("WINDOWS_PREFIX", ""), partitions=2)
    alerts = (Alerts("too_high", limits, above),)
    declared = {"event": Reading, "deduplicate": False, "topics": topics, "alerts": alerts, "tables": (limits,)}
    return Application(**{"name": "gauges", "state": state, "skew": SECOND, **declared, **options})


def spans(emit: Emit) -> Application:
    """The application with spans, whose weights are derived by a table."""
    derived = (Derived("weights", Weight, weights, tables=(factors,)),)
    return application(Span, emit=emit, tables=(limits, factors), derived=derived)


app = application(Gauge)
spans_event, spans_close = spans(Emit.EVENT), spans(Emit.CLOSE)
