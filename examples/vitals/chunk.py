"""A chunk: what a monitor sends of one channel each second, and the event that it is decoded to."""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from stateloop import BaseEvent, FromKey, FromValue, PackedIntegers, Raw, RawRecord


class Channel(NamedTuple):
    """A waveform that a monitor measures: the name of its field, and its samples a second."""

    name: str
    rate: int


PULSE, ECG = Channel("pulse", 100), Channel("ecg", 360)
CHANNELS = (PULSE, ECG)
MILLISECOND = timedelta(milliseconds=1)
HEAD = struct.Struct("<q16sB")
"""The time of the first sample, in milliseconds since 1970, the serial number of the monitor, and the channel."""
NUMBER = FromValue("B", at=HEAD.size - 1)
DECODERS = [PackedIntegers(16, channels=(channel.name,), samples=channel.rate, skip=HEAD.size) for channel in CHANNELS]


class Chunk(BaseEvent):
    """A second of one channel of a patient, as the monitor's converter measures it."""

    event_id: str
    patient: str
    monitor: str
    pulse: list[int] | None = None
    ecg: list[int] | None = None


def encoded(ts: datetime, monitor: str, channel: Channel, samples: Sequence[int]) -> bytes:
    """A chunk as a monitor sends it: the head, and samples of 16 bits."""
    milliseconds = (ts - datetime.fromtimestamp(0, UTC)) // MILLISECOND
    head = HEAD.pack(milliseconds, monitor.encode(), CHANNELS.index(channel))
    return head + struct.pack(f"<{len(samples)}h", *samples)


def decoded(record: RawRecord) -> dict[str, Any]:
    """The samples of the channel that the head of a chunk names. Raises ValueError."""
    number: int = NUMBER.read(record)
    if number >= len(DECODERS):
        raise ValueError(f"channel {number} is unknown")
    return DECODERS[number](record)


def waveforms(topic: str) -> Raw:
    """The raw source. Its records have the patient as their key."""
    fields = {"patient": FromKey(), "ts": FromValue("<q", unit=MILLISECOND), "monitor": FromValue("16s", at=8)}
    return Raw(topic, decoded, fields)
