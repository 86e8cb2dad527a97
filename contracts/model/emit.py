"""The emit modes: when the job writes a snapshot of a state."""

from datetime import timedelta
from enum import StrEnum

EMIT_INTERVAL = timedelta(seconds=1)


class Emit(StrEnum):
    """The emit modes. The state and the content of a snapshot are the same for all three."""

    EVENT = "event"
    """After each record, within milliseconds."""
    BATCH = "batch"
    """Once for each interval, the newest snapshot of each changed key: cheaper, for dashboards and backfill."""
    CLOSE = "close"
    """Once for each window, when it and its grace are over: for billing, reports and archives."""
