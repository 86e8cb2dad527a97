"""The recordings: the pulse of a person over eleven minutes, of which each patient has a part.

The file is read without importing heartpy, which would load its plots. It has about 100 samples a second, of 10 bits.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from examples.vitals.chunk import RATE
from examples.vitals.errors import NoRecordingsError

APART = 13
"""The recording of each patient begins so many seconds after that of the one before."""


def second(patient: int, number: int) -> list[int]:
    """The samples of a patient in a second, by its number since any time; the recording repeats."""
    samples = recording()
    whole = len(samples) // RATE
    start = (patient * APART + number) % whole * RATE
    return samples[start : start + RATE]


@cache
def recording() -> list[int]:
    """All samples. Raises NoRecordingsError."""
    package = find_spec("heartpy")
    if package is None or not package.submodule_search_locations:
        raise NoRecordingsError
    file = Path(package.submodule_search_locations[0]) / "data" / "data3.csv"
    _, *lines = file.read_text(encoding="utf-8").splitlines()
    return [int(line.partition(",")[2]) for line in lines]
