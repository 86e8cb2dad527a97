"""The devices heard of last, with what their enrichments gave."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from contracts.planning.plan import settled
from contracts.types.columns import choices, without_none
from services.live.view import Device, Mark

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application
    from contracts.wire import Order, Snapshot

MARKS = {"result": Mark.RESULT, "absence": Mark.ABSENCE, "failure": Mark.FAILURE, "skipped": Mark.SKIPPED}
SCALARS = (str, int, float, bool)


class Devices:
    """The latest snapshot of the latest devices, the last one first."""

    def __init__(self, application: Application, keep: int = 80) -> None:
        self._application = application
        self._keep = keep
        self._columns = columns(application)
        self._latest: OrderedDict[str, tuple[Snapshot, float]] = OrderedDict()

    def put(self, snapshot: Snapshot, now: float) -> None:
        """A new snapshot. A later life of a device takes the place of the earlier one."""
        known = self._latest.get(snapshot.device_id)
        if known is not None and _place(snapshot) <= _place(known[0]):
            return
        self._latest[snapshot.device_id] = snapshot, now
        self._latest.move_to_end(snapshot.device_id, last=False)
        if len(self._latest) > self._keep:
            self._latest.popitem()

    def rows(self, now: float, clock_time: datetime) -> tuple[Device, ...]:
        """A row for each device."""
        return tuple(
            Device(
                device_id=snapshot.device_id,
                version=snapshot.version,
                age_s=now - at,
                fields={name: text(snapshot.state.get(name)) for name in self._columns},
                marks={one.name: mark(snapshot, one.name) for one in self._application.enrichments},
                settled=settled(self._application, snapshot, clock_time),
            )
            for snapshot, at in self._latest.values()
        )


def mark(snapshot: Snapshot, enrichment: str) -> Mark:
    """Where an enrichment stands."""
    answer = snapshot.enrichments.get(enrichment)
    return Mark.OPEN if answer is None else MARKS[answer.status]


def columns(application: Application) -> tuple[str, ...]:
    """The fields of the state that are one short value, in the order of declaration."""
    return tuple(name for name in application.sources if _is_short(application.state.model_fields[name].annotation))


def text(value: Any) -> str:
    """A value as a table shows it."""
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _is_short(annotation: Any) -> bool:
    inner, _ = without_none(annotation)
    return inner in SCALARS or bool(choices(inner))


def _place(snapshot: Snapshot) -> tuple[datetime, Order]:
    return snapshot.first_seen, snapshot.order
