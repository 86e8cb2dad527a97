"""The records of the topics other than events, with their keys and partitions."""

from contracts.wire.dead_letter import LARGEST_HEAD, NEVER_WRITTEN, DeadLetter
from contracts.wire.messages import (
    LARGEST_COUNT,
    REDRIVEN,
    Answer,
    DerivedRecord,
    Feedback,
    OffsetVersioned,
    Order,
    Snapshot,
    Status,
    Wire,
    decode_snapshot,
)

__all__ = [
    "LARGEST_COUNT",
    "LARGEST_HEAD",
    "NEVER_WRITTEN",
    "REDRIVEN",
    "Answer",
    "DeadLetter",
    "DerivedRecord",
    "Feedback",
    "OffsetVersioned",
    "Order",
    "Snapshot",
    "Status",
    "Wire",
    "decode_snapshot",
]
