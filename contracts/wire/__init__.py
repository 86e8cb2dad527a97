"""Records of the topics besides events, and the keys and partitions that they have."""

from contracts.wire.messages import (
    LARGEST_COUNT,
    NEVER_WRITTEN,
    REDRIVEN,
    Answer,
    DeadLetter,
    DerivedRecord,
    Feedback,
    Order,
    Snapshot,
    Status,
    Wire,
    decode_snapshot,
)

__all__ = [
    "LARGEST_COUNT",
    "NEVER_WRITTEN",
    "REDRIVEN",
    "Answer",
    "DeadLetter",
    "DerivedRecord",
    "Feedback",
    "Order",
    "Snapshot",
    "Status",
    "Wire",
    "decode_snapshot",
]
