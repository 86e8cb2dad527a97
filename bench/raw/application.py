"""One application for each format of the chunks: `bench.raw.application:int16_200hz_1ch`."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any

from bench.harness.topics import PARTITIONS
from contracts import Application, BaseEvent, Count, FromKey, FromValue, PackedIntegers, Raw, RawRecord, State, Topics

PREFIX = "raw."
CHUNKS = f"{PREFIX}chunks"
HEAD = struct.Struct("<q")
"""The time of the first sample, in milliseconds since 1970."""


class OneChannel(BaseEvent):
    """A span of one channel."""

    event_id: str
    device_id: str
    samples: list[int]


class TwelveLeads(BaseEvent):
    """A second of an electrocardiogram."""

    event_id: str
    device_id: str
    i: list[int]
    ii: list[int]
    iii: list[int]
    avr: list[int]
    avl: list[int]
    avf: list[int]
    v1: list[int]
    v2: list[int]
    v3: list[int]
    v4: list[int]
    v5: list[int]
    v6: list[int]


class Decoded(State, key="device_id", window=timedelta(seconds=10)):
    """A state of the events, as an application must have one. Its query does not run."""

    chunks: Annotated[int, Count()]


LEADS = tuple(name for name in TwelveLeads.model_fields if name not in BaseEvent.model_fields)[2:]


@dataclass(frozen=True)
class ChunkFormat:
    """The format of the chunks of one source: `samples` of each channel, of so many bits."""

    name: str
    bits: int
    channels: tuple[str, ...]
    samples: int
    function: Callable[[RawRecord], dict[str, Any]] | None = None
    """The decoder, if it is none that is declared."""

    @property
    def size(self) -> int:
        """The bytes of a chunk."""
        return HEAD.size + len(self.channels) * self.samples * self.bits // 8

    @cached_property
    def application(self) -> Application:
        """The application of the source."""
        decode = self.function or PackedIntegers(
            self.bits, channels=self.channels, samples=self.samples, skip=HEAD.size
        )
        fields = {"device_id": FromKey(), "ts": FromValue("<q", unit=timedelta(milliseconds=1))}
        return Application(
            name="decoded",
            event=TwelveLeads if self.channels == LEADS else OneChannel,
            state=Decoded,
            topics=Topics(prefix=PREFIX, replay=True, partitions=PARTITIONS),
            raw=(Raw(CHUNKS, decode, fields),),
        )


def unpacked(record: RawRecord) -> dict[str, Any]:
    """A second of 12 leads, decoded by Python's own means."""
    numbers = struct.unpack_from(f"<{12 * 200}h", record.value, HEAD.size)
    return {name: numbers[place::12] for place, name in enumerate(LEADS)}


FORMATS = {
    one.name: one
    for one in (
        ChunkFormat("int16-100hz-1ch", 16, ("samples",), 1_000),
        ChunkFormat("int16-200hz-1ch", 16, ("samples",), 2_000),
        ChunkFormat("int12-200hz-1ch", 12, ("samples",), 2_000),
        ChunkFormat("int16-100hz-12ch", 16, LEADS, 100),
        ChunkFormat("int16-200hz-12ch", 16, LEADS, 200),
        ChunkFormat("int12-200hz-12ch", 12, LEADS, 200),
        ChunkFormat("function-200hz-12ch", 16, LEADS, 200, unpacked),
    )
}
"""Chunks of 2-5 KB: ten seconds of one channel, or one second of twelve."""
(
    int16_100hz_1ch,
    int16_200hz_1ch,
    int12_200hz_1ch,
    int16_100hz_12ch,
    int16_200hz_12ch,
    int12_200hz_12ch,
    function_200hz_12ch,
) = (one.application for one in FORMATS.values())
