"""An application with raw sources: packed samples of a monitor, and lines of text that a function decodes."""

import os
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel

from contracts import (
    Application,
    BaseEvent,
    Count,
    Coverage,
    FromHeader,
    FromKey,
    FromValue,
    PackedIntegers,
    Raw,
    RawRecord,
    Series,
    State,
    Topics,
)

MILLISECOND = timedelta(milliseconds=1)
IS_FIXED = int(os.environ.get("WAVEFORMS_FIXED", "0"))
"""1 in a job whose decoder is fixed."""


class Chunk(BaseEvent):
    """A second of two channels."""

    event_id: str
    patient: str
    ecg: list[float]
    pulse: list[float] | None = None
    beds: int | None = None
    admitted: AwareDatetime | None = None


class Blob(State, key="patient", window=timedelta(seconds=10)):
    """Ten seconds of a patient."""

    chunks: Annotated[int, Count()]
    ecg: Annotated[list[float | None], Series(rate=4, unit="mV")]
    covered: Annotated[list[list[int]], Coverage(timedelta(seconds=1), of="ecg", rate=4)]


class Line(BaseModel):
    """The fields that the function decodes from a line, as a model."""

    ecg: list[float]


def lines(record: RawRecord) -> list[dict[str, Any]] | Line:
    """Decode lines of numbers, an event for each."""
    if record.value == b"model":
        return Line(ecg=[1.0])
    if record.value == b"bug":
        return Line(ecg=[1 / IS_FIXED])
    found = [[float(number) for number in line.split(",")] for line in record.value.decode().splitlines()]
    return [{"ecg": numbers} for numbers in found]


def sources(prefix: str = "") -> tuple[Raw, Raw]:
    """Declare packed samples, and lines of text."""
    packed = Raw(
        f"{prefix}packed",
        PackedIntegers(16, channels=("ecg", "pulse"), samples=4, scale=0.5, skip=8),
        {"patient": FromKey(), "ts": FromValue("<q", unit=MILLISECOND), "beds": FromHeader("beds")},
    )
    text = Raw(f"{prefix}text", lines, {"patient": FromKey(), "ts": FromHeader("at", unit=MILLISECOND)})
    return packed, text


PACKED, TEXT = sources()


def application(raw: tuple[Raw, ...] = (PACKED, TEXT), prefix: str = "", **options: Any) -> Application:
    """Declare the application, on topics of its own."""
    return Application(
        name="waveforms", event=Chunk, state=Blob, topics=Topics(prefix=prefix, partitions=2), raw=raw, **options
    )


def prefixed(prefix: str) -> Application:
    """Declare the application and its sources with topics that no other test has."""
    return application(sources(prefix), prefix)


app = prefixed(os.environ.get("WAVEFORMS_PREFIX", ""))
