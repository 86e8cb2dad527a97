"""The applications: `examples.vitals.application:suite`."""

from collections.abc import Iterable
from datetime import timedelta

from examples.vitals.chunk import PULSE, Chunk, waveforms
from examples.vitals.state import BLOB, Blob, HeartRate, Hour
from stateloop import Api, Application, Derived, Snapshot, Suite, Topics, enrichment

SAMPLES = PULSE.rate * round(BLOB.total_seconds())


def is_complete(pulse: list[int | None]) -> bool:
    """Return whether the pulse of a blob has all its samples."""
    return len(pulse) == SAMPLES and None not in pulse


@enrichment(api="reference", when=is_complete)
async def heart_rate(api: Api, pulse: list[int | None]) -> HeartRate:
    """The heart rate of a complete blob; absent where the waveform shows none."""
    return await api.get("/heart_rate", HeartRate, rate=PULSE.rate, samples="_".join(map(str, pulse)))


def latest_rate(snapshot: Snapshot) -> Iterable[tuple[str, HeartRate]]:
    """The latest heart rate of a patient, from the newest blob that has a heart rate."""
    answer = snapshot.enrichments.get("heart_rate")
    if answer is not None and answer.result is not None:
        yield snapshot.device_id, HeartRate.model_validate(answer.result)


def vitals(prefix: str) -> Suite:
    """The suite, with this prefix of all its topics."""
    raw, events = (waveforms(f"{prefix}waveforms"),), f"{prefix}chunks"
    blobs = Application(
        name="blobs",
        event=Chunk,
        state=Blob,
        enrichments=(heart_rate,),
        topics=Topics(prefix=f"{prefix}blobs.", events=events),
        derived=(Derived("rates", HeartRate, latest_rate, lifetime=timedelta(minutes=10)),),
        raw=raw,
    )
    hours = Application(
        name="hours", event=Chunk, state=Hour, topics=Topics(prefix=f"{prefix}hours.", events=events), raw=raw
    )
    return Suite(blobs, hours)


suite = vitals("vitals.")
