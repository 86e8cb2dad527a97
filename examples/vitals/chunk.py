"""A chunk: what a monitor sends each second, and the event that it is decoded to."""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from contracts import BaseEvent, FromKey, FromValue, PackedIntegers, Raw

RATE = 100
"""Samples a second."""
MILLISECOND = timedelta(milliseconds=1)
HEAD = struct.Struct("<q16s")
"""The time of the first sample, in milliseconds since 1970, and the serial number of the monitor."""


class Chunk(BaseEvent):
    """A second of a patient's pulse, as the monitor's converter measures it."""

    event_id: str
    patient: str
    monitor: str
    pulse: list[int]


def encoded(ts: datetime, monitor: str, samples: Sequence[int]) -> bytes:
    """A chunk as a monitor sends it: the head, and samples of 16 bits."""
    milliseconds = (ts - datetime.fromtimestamp(0, UTC)) // MILLISECOND
    return HEAD.pack(milliseconds, monitor.encode()) + struct.pack(f"<{len(samples)}h", *samples)


def waveforms(topic: str) -> Raw:
    """The raw source. Its records have the patient as their key."""
    fields = {"patient": FromKey(), "ts": FromValue("<q", unit=MILLISECOND), "monitor": FromValue("16s", at=8)}
    return Raw(topic, PackedIntegers(16, channels=("pulse",), samples=RATE, skip=HEAD.size), fields)
