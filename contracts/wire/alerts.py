"""The records of alerts."""

from typing import Literal

from pydantic import AwareDatetime, Field

from contracts.wire.messages import Order, Wire

AlertStatus = Literal["pending", "open", "closed"]
"""Pending: the condition is true, and not yet for as long as the rule's `hold`."""
ClosedBy = Literal["condition", "rule_changed", "rule_removed", "expired"]


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


class AlertRecord(Wire):
    """The alerts of a key in one window: those that are pending or open, and those that this record has closed.

    There is a record for each change. It is in the partition of the snapshots, and its key is the `window_key`.
    """

    device_id: str
    first_seen: AwareDatetime
    epoch: int = Field(default=0, ge=0)
    version: int = Field(ge=1)
    """With `epoch`, of the snapshot that was evaluated."""
    as_of: AwareDatetime
    offset: int = Field(ge=-1)
    """The offset of the last snapshot of the partition that was read before: earlier ones change nothing any more."""
    status: AlertStatus
    """`open` if an alert is open, else `pending` if one is, else `closed`."""
    alerts: tuple[Alert, ...]

    @property
    def order(self) -> Order:
        """That of the snapshot."""
        return self.epoch, self.version

    @property
    def active(self) -> tuple[Alert, ...]:
        """The alerts that are pending or open."""
        return tuple(one for one in self.alerts if one.is_active)
