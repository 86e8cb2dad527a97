"""The chunks, and whether the events have their content."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

import orjson

from bench.harness.oracle import OracleReport
from bench.raw.application import HEAD, ChunkFormat

DEVICES = 50
DIFFERENT = 64
"""How many chunks have samples of their own."""
STEP = 9
"""The largest difference between a sample and the next one."""
FIRST_MS = 1_750_000_000_000
SEED = 7


class Waveform(NamedTuple):
    """The samples of each channel, and how they are packed."""

    channels: dict[str, list[int]]
    packed: bytes


class Chunks:
    """So many chunks of a format. Chunk `n` has a time of its own, and the samples of one of a few waveforms."""

    def __init__(self, form: ChunkFormat, count: int) -> None:
        random = Random(SEED)  # noqa: S311  # a load keeps no secret
        self._waveforms = [_waveform(form, random) for _ in range(DIFFERENT)]
        self.count = count

    def records(self) -> Iterator[tuple[str, bytes]]:
        """The key and the value of each chunk."""
        for number in range(self.count):
            packed = self._waveforms[number % DIFFERENT].packed
            yield f"d{number % DEVICES}", HEAD.pack(FIRST_MS + number) + packed

    def check(self, events: Iterable[bytes]) -> OracleReport:
        """Compare all events with the chunks: each must be there once, with the samples of its chunk."""
        report, seen = OracleReport(events=self.count, given="chunks", gives="event"), bytearray(self.count)
        for value in events:
            report.snapshots += 1
            event = orjson.loads(value)
            number = round(datetime.fromisoformat(event["ts"]).timestamp() * 1000) - FIRST_MS
            if not 0 <= number < self.count:
                report.unknown += 1
            elif self._is_wrong(event, number):
                report.wrong += 1
                report.example = report.example or repr(value[:300])
            else:
                report.duplicates += seen[number]
                seen[number] = 1
        report.missing = seen.count(0)
        return report

    def _is_wrong(self, event: dict[str, Any], number: int) -> bool:
        channels = self._waveforms[number % DIFFERENT].channels
        return event["device_id"] != f"d{number % DEVICES}" or any(event[name] != channels[name] for name in channels)


def _waveform(form: ChunkFormat, random: Random) -> Waveform:
    """Samples that change slowly, as those of a pulse do; so they are compressed as well."""
    channels = {name: _samples(form, random) for name in form.channels}
    interleaved = [number for at in zip(*channels.values(), strict=True) for number in at]
    return Waveform(channels, packed(interleaved, form.bits))


def _samples(form: ChunkFormat, random: Random) -> list[int]:
    number, found, bound = 0, list[int](), (1 << (form.bits - 1)) - STEP
    for _ in range(form.samples):
        number = min(max(number + random.randint(-STEP, STEP), -bound), bound)
        found.append(number)
    return found


def packed(numbers: Sequence[int], bits: int) -> bytes:
    """Whole bytes of numbers of 12 or 16 bits, the lowest bits first."""
    total = 0
    for place, number in enumerate(numbers):
        total |= (number & ((1 << bits) - 1)) << (bits * place)
    return total.to_bytes(bits * len(numbers) // 8, "little")
