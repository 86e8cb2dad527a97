"""The seconds of the patients: which of them have an event, and which were lost."""

from collections.abc import Iterator, Sequence
from random import Random

SEED = 7
LOST = 0.01
"""The share of the seconds without an event."""


def is_present(random: Random) -> bool:
    """Whether the next second has an event."""
    return random.random() >= LOST


def spans(seconds: Sequence[bool]) -> Iterator[tuple[bool, int, int]]:
    """The runs of seconds that are alike: whether they have events, the first, and the one after the last."""
    start = 0
    for end in range(1, len(seconds) + 1):
        if end == len(seconds) or seconds[end] != seconds[start]:
            yield seconds[start], start, end
            start = end
