"""An application that reads raw samples of many patients and direct events, in short windows with a short grace."""

import time
from datetime import timedelta
from typing import Annotated, Any

from contracts import Application, BaseEvent, Count, FromKey, Raw, RawRecord, State, Topics

GRACE = timedelta(seconds=2)
SECOND = timedelta(seconds=1)
DECODING_S = 0.03
"""How long the decoder takes for a record: a backlog takes longer than the application needs to read direct events."""


class Sample(BaseEvent):
    """A sample, or a note of a nurse that the ward sends as an event."""

    event_id: str
    patient: str


class Minute(State, key="patient", window=SECOND, grace=GRACE):
    """The number of samples of a patient in a second."""

    samples: Annotated[int, Count()]


def decode(record: RawRecord) -> dict[str, Any]:
    """Decode a sample, slowly."""
    time.sleep(DECODING_S)
    return {"ts": record.timestamp}


def application(prefix: str) -> Application:
    """Declare the application, on topics of its own."""
    raw = Raw(f"{prefix}samples", decode, {"patient": FromKey()})
    topics = Topics(prefix=prefix, partitions=2)
    return Application(name="monitored", event=Sample, state=Minute, topics=topics, raw=(raw,), skew=SECOND)
