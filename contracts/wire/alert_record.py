"""The records of alerts."""

from typing import Literal, Self
from uuid import UUID, uuid5

from pydantic import AwareDatetime, Field
from typing_extensions import override

from contracts.types.key import Key
from contracts.wire.dead_letter import NEVER_WRITTEN
from contracts.wire.messages import OffsetVersioned, WindowStart, Wire

AlertStatus = Literal["pending", "open", "closed"]
"""The status of an alert. Pending: the condition is true, but not yet for the rule's `hold`."""
ClosedBy = Literal["condition", "rule_changed", "rule_removed", "expired"]
EventKind = Literal["opened", "closed"]
NAMESPACE = UUID("156f06c5-c4cc-49ba-9a5a-269dd1d62658")
"""The namespace of the idempotency keys. It never changes."""


class Alert(Wire):
    """One crossing of one version of a rule. Its `id` is the same from pending to closed, and in repetitions."""

    id: str
    rule: str
    """The key of the rule in its table."""
    rule_version: int
    status: AlertStatus
    since: AwareDatetime
    """The `as_of` of the snapshot with which the condition became true."""
    opened_at: AwareDatetime | None = None
    """`since` and the rule's `hold`."""
    closed_at: AwareDatetime | None = None
    closed_by: ClosedBy | None = None

    @property
    def is_active(self) -> bool:
        """Whether it is pending or open."""
        return self.status != "closed"


class AlertEvent(Wire):
    """An alert that has opened, or closed, as a webhook receives it. A repetition has the same content."""

    id: str
    """The id of the alert."""
    event: EventKind
    alerts: str
    """The name of the alerts in the application."""
    device_id: str
    first_seen: AwareDatetime
    epoch: int
    version: int
    """With `epoch`, of the snapshot that was evaluated."""
    as_of: AwareDatetime
    rule: str
    rule_version: int
    since: AwareDatetime
    opened_at: AwareDatetime | None = None
    closed_at: AwareDatetime | None = None
    closed_by: ClosedBy | None = None

    @property
    def idempotency_key(self) -> str:
        """The identity of the event, as a UUID: keys of devices may have characters that no HTTP header has."""
        return str(uuid5(NAMESPACE, f"{self.id}/{self.event}"))


class AlertRecord(OffsetVersioned):
    """The alerts of a key in one window: those that are pending or open, and those that this record has closed.

    There is a record for each change. It is in the partition of the snapshots, and its key is the `window_key`.
    """

    device_id: Key
    first_seen: WindowStart
    epoch: int = Field(default=0, ge=0)
    version: int = Field(ge=1)
    """With `epoch`, of the snapshot that was evaluated."""
    as_of: AwareDatetime
    offset: int = Field(ge=-1)
    """The offset of the last snapshot of the partition that was read before: earlier ones have no further effect."""
    status: AlertStatus
    """`open` if an alert is open, else `pending` if one is, else `closed`."""
    alerts: tuple[Alert, ...]
    changed: tuple[str, ...] = ()
    """The ids of the alerts that this record has opened or closed."""

    @override
    def moved(self, version: int) -> Self:
        """Return a copy of this version for another partition.

        It changes no alert, and no snapshot of its partition was read before.
        """
        return super().moved(version).model_copy(update={"offset": NEVER_WRITTEN, "changed": ()})

    @property
    def active(self) -> tuple[Alert, ...]:
        """The alerts that are pending or open."""
        return tuple(alert for alert in self.alerts if alert.is_active)
