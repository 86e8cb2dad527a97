"""What the states of all patients must be, from the recordings and from what arrives of them, second by second."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from examples.vitals.arrivals import LONGEST_DELAY, fate, name
from examples.vitals.chunk import RATE
from examples.vitals.rates import heart_rate
from examples.vitals.recordings import second

BLOB_S, HOUR_S = 10, 3600
WindowKey = tuple[str, datetime]


@dataclass
class Expected:
    """The series of each blob, and the covered steps of each hour."""

    blobs: dict[WindowKey, list[int | None]] = field(default_factory=dict)
    hours: dict[WindowKey, list[list[int]]] = field(default_factory=dict)

    def rates(self) -> dict[WindowKey, float | None]:
        """The heart rate of each complete blob; None where heartpy finds none."""
        complete = {key: series for key, series in self.blobs.items() if len(series) == BLOB_S * RATE}
        whole = {key: [one for one in series if one is not None] for key, series in complete.items()}
        return {key: heart_rate(series, RATE) for key, series in whole.items() if len(series) == BLOB_S * RATE}


def expected(seed: int, patients: int, seconds: range) -> Expected:
    """The states after the arrivals of these seconds."""
    found = Expected()
    for patient in range(patients):
        sent = [
            number
            for number in range(seconds.start - LONGEST_DELAY, seconds.stop)
            if (what := fate(seed, patient, number)).copies and number + what.delay in seconds
        ]
        for start, numbers in _by_window(sent, BLOB_S).items():
            found.blobs[name(patient), _time(start)] = _series(patient, start, numbers)
        for start, numbers in _by_window(sent, HOUR_S).items():
            found.hours[name(patient), _time(start)] = _spans([number - start for number in numbers])
    return found


def _by_window(numbers: list[int], size: int) -> dict[int, list[int]]:
    windows = defaultdict(list)
    for number in numbers:
        windows[number // size * size].append(number)
    return windows


def _series(patient: int, start: int, numbers: list[int]) -> list[int | None]:
    known = [
        second(patient, number) if number in numbers else [None] * RATE for number in range(start, max(numbers) + 1)
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
