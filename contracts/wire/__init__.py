"""Records of the topics besides events, and the keys and partitions that they have."""

from contracts.wire.messages import (
    ASK_AGAIN,
    LARGEST_COUNT,
    NEVER_WRITTEN,
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
    "ASK_AGAIN",
    "LARGEST_COUNT",
    "NEVER_WRITTEN",
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
