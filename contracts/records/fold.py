"""The state as a plain Python fold of deltas: tests compare the Spark job with it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from contracts.model.application import Application
from contracts.records.record import Delta
from contracts.wire import Answer, Snapshot

WindowKey = tuple[str, datetime]


@dataclass(frozen=True)
class Partial:
    """A merge of some deltas of one window: an element of a commutative monoid, field by field."""

    version: int
    as_of: datetime
    fields: dict[str, Any]
    traceparent: str = ""
    """That of the delta with the largest time; of several such, the largest, so the order of records is irrelevant."""
    event_offset: int | None = None
    """The largest offset of the events; None without an event."""


def lift(application: Application, delta: Delta) -> Partial:
    """The partial that one delta stands for."""
    if delta.slot is not None:
        fields = {delta.slot: delta.answer}
    else:
        reduced = {name: (application.reducers[name], source) for name, source in application.sources.items()}
        fields = {
            name: reducer.lift(delta.values[source], delta.ts, delta.first_seen)
            for name, (reducer, source) in reduced.items()
            if delta.ts is not None
            and delta.values.get(source) is not None
            and (reducer.where is None or reducer.where.matches(delta.values))
        }
    return Partial(1, delta.record_time, fields, delta.traceparent or "", delta.event_offset)


def merge(application: Application, left: Partial, right: Partial) -> Partial:
    """The partial that stands for all deltas of both. Associative and commutative."""
    fields = dict(left.fields)
    for name, partial in right.fields.items():
        fields[name] = application.reducers[name].merge(fields[name], partial) if name in fields else partial
    as_of, traceparent = max((left.as_of, left.traceparent), (right.as_of, right.traceparent))
    offsets = (offset for offset in (left.event_offset, right.event_offset) if offset is not None)
    return Partial(left.version + right.version, as_of, fields, traceparent, max(offsets, default=None))


def present(application: Application, window: WindowKey, partial: Partial, epoch: int = 0) -> Snapshot:
    """The snapshot that publishes a partial."""
    state = {name: application.reducers[name].present(partial.fields.get(name)) for name in application.sources}
    return Snapshot(
        device_id=window[0],
        first_seen=window[1],
        epoch=epoch,
        version=partial.version,
        as_of=partial.as_of,
        event_offset=partial.event_offset,
        state={name: value for name, value in state.items() if value is not None},
        enrichments={
            name: Answer.model_validate(partial.fields[name]) for name in application.slots if name in partial.fields
        },
        traceparent=partial.traceparent or None,
    )


@dataclass
class Fold:
    """All windows, folded one delta at a time; a delta seen before gives no snapshot, as in the job."""

    application: Application
    epoch: int = 0
    windows: dict[WindowKey, Partial] = field(default_factory=dict)
    seen: set[tuple[WindowKey, str]] = field(default_factory=set)

    def add(self, delta: Delta) -> Snapshot | None:
        """The snapshot after one delta; None if the application counts each delta once and this one was there."""
        window = delta.device_id, delta.first_seen
        if self.application.deduplicate and (window, delta.delta_id) in self.seen:
            return None
        self.seen.add((window, delta.delta_id))
        lifted = lift(self.application, delta)
        known = self.windows.get(window)
        self.windows[window] = merge(self.application, known, lifted) if known else lifted
        return present(self.application, window, self.windows[window], self.epoch)
