"""The chunks that reach the broker: some are lost, repeated or late. The seed decides."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from examples.vitals.chunk import CHANNELS, ECG, Channel, encoded
from examples.vitals.recordings import second

LOST, REPEATED, LATE = 0.02, 0.02, 0.05
LONGEST_DELAY = 5
"""In seconds."""
ECG_EVERY = 5
"""One patient of this number has an ECG too."""


@dataclass(frozen=True)
class Arrival:
    """A chunk as it reaches the broker."""

    patient: str
    value: bytes


@dataclass(frozen=True)
class Transmission:
    """The number of arrivals of a chunk, and their delay in seconds."""

    count: int
    delay: int


def name(patient: int) -> str:
    """The name of a patient."""
    return f"patient-{patient:03}"


def is_measured(channel: Channel, patient: int) -> bool:
    """Whether the monitor of a patient has this channel."""
    return channel is not ECG or patient % ECG_EVERY == 0


def transmission(seed: int, channel: Channel, patient: int, number: int) -> Transmission:
    """Return the transmission of the chunk of this second, since 1970."""
    chance = random.Random(f"{seed}/{channel.name}/{patient}/{number}")  # noqa: S311  # it keeps no secret
    draw = chance.random()
    count = 0 if draw < LOST else 2 if draw < LOST + REPEATED else 1
    return Transmission(count, chance.randint(1, LONGEST_DELAY) if chance.random() < LATE else 0)


def arrivals(seed: int, patients: int, number: int) -> Iterator[Arrival]:
    """The chunks that arrive when this second, since 1970, is over."""
    for delay in range(LONGEST_DELAY + 1):
        sent = number - delay
        pairs = ((channel, patient) for patient in range(patients) for channel in CHANNELS)
        for channel, patient in (pair for pair in pairs if is_measured(*pair)):
            what = transmission(seed, channel, patient, sent)
            if what.delay == delay and what.count:
                time, samples = datetime.fromtimestamp(sent, UTC), second(channel, patient, sent)
                value = encoded(time, f"M{patient:06}", channel, samples)
                yield from [Arrival(name(patient), value)] * what.count
