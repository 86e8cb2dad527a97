"""The states: a blob of ten seconds, and an hour of a patient."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel

from examples.vitals.chunk import ECG, PULSE
from stateloop import Count, Coverage, Enriched, Latest, Series, State

SECOND = timedelta(seconds=1)
BLOB = 10 * SECOND


class HeartRate(BaseModel):
    """The heart rate of a blob, in beats a minute."""

    bpm: float


class Blob(State, key="patient", window=BLOB):
    """Ten seconds of a patient. It can be read while it is still being built."""

    chunks: Annotated[int, Count()]
    monitor: Annotated[str | None, Latest()]
    pulse: Annotated[list[int | None], Series(rate=PULSE.rate)]
    ecg: Annotated[list[int | None], Series(rate=ECG.rate, unit="1/200 mV")]
    heart_rate: Annotated[HeartRate | None, Enriched()]


class Hour(State, key="patient", window=timedelta(hours=1)):
    """For which seconds of an hour there is a pulse of a patient."""

    chunks: Annotated[int, Count()]
    covered: Annotated[list[list[int]], Coverage(SECOND, of="pulse", rate=PULSE.rate)]
