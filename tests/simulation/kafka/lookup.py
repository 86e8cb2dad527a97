"""Looks offsets up in a log as a broker does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.kafka.values import EARLIEST, LATEST, NEWEST, OffsetAt

if TYPE_CHECKING:
    from tests.simulation.kafka.log import PartitionLog

UNKNOWN_PARTITION = "_UNKNOWN_PARTITION"
"""The code of a consumer for a partition that it does not find."""
NONE = OffsetAt(-1, -1)


def offset_at(log: PartitionLog, at: int) -> int:
    """Return the offset for a reader of committed records: see `Admin.offsets`."""
    if at == EARLIEST:
        return log.start
    if at == LATEST:
        return log.stable_end
    found = log.first_since(at)
    return LATEST if found is None or found.offset >= log.stable_end else found.offset


def record_at(log: PartitionLog, at: int) -> OffsetAt:
    """Return the offset and the time of a record: see `Admin.records`."""
    if at in {EARLIEST, LATEST}:
        return OffsetAt(log.start if at == EARLIEST else log.end, -1)
    found = log.newest() if at == NEWEST else log.first_since(at)
    return NONE if found is None else OffsetAt(found.offset, found.timestamp_ms)
