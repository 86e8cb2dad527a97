"""The expected states of all patients, from the recordings and the chunks that arrive, second by second."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from examples.vitals.arrivals import LONGEST_DELAY, is_measured, name, transmission
from examples.vitals.chunk import CHANNELS, ECG, PULSE, Channel
from examples.vitals.rates import heart_rate
from examples.vitals.recordings import second

BLOB_S, HOUR_S = 10, 3600
WindowKey = tuple[str, datetime]
Samples = list[int | None]


@dataclass
class Expected:
    """The series of each blob by channel, and the covered steps of each hour."""

    blobs: dict[WindowKey, dict[str, Samples]] = field(default_factory=dict)
    hours: dict[WindowKey, list[list[int]]] = field(default_factory=dict)

    def rates(self) -> dict[WindowKey, float | None]:
        """The heart rate of each complete blob; None where heartpy finds none."""
        known = {key: [one for one in blob[PULSE.name] if one is not None] for key, blob in self.blobs.items()}
        return {key: heart_rate(one, PULSE.rate) for key, one in known.items() if len(one) == BLOB_S * PULSE.rate}


def expected(seed: int, patients: int, seconds: range) -> Expected:
    """The states after the arrivals of these seconds."""
    found = Expected()
    measured = [(one, patient) for one in CHANNELS for patient in range(patients) if is_measured(one, patient)]
    for channel, patient in measured:
        sent = [
            number
            for number in range(seconds.start - LONGEST_DELAY, seconds.stop)
            if (what := transmission(seed, channel, patient, number)).count and number + what.delay in seconds
        ]
        for start, numbers in _by_window(sent, BLOB_S).items():
            blob = found.blobs.setdefault((name(patient), _time(start)), {one.name: [] for one in CHANNELS})
            blob[channel.name] = _series(channel, patient, start, numbers)
        for start, numbers in _by_window(sent, HOUR_S).items():
            spans = [] if channel is ECG else _spans([number - start for number in numbers])
            found.hours.setdefault((name(patient), _time(start)), spans)
    return found


def _by_window(numbers: list[int], size: int) -> dict[int, list[int]]:
    windows = defaultdict(list)
    for number in numbers:
        windows[number // size * size].append(number)
    return windows


def _series(channel: Channel, patient: int, start: int, numbers: list[int]) -> Samples:
    known = [
        second(channel, patient, number) if number in numbers else [None] * channel.rate
        for number in range(start, max(numbers) + 1)
    ]
    return [sample for chunk in known for sample in chunk]


def _spans(steps: list[int]) -> list[list[int]]:
    spans: list[list[int]] = []
    for step in steps:
        if spans and spans[-1][1] == step:
            spans[-1][1] = step + 1
        else:
            spans.append([step, step + 1])
    return spans


def _time(number: int) -> datetime:
    return datetime.fromtimestamp(number, UTC)
