"""Patients with a pulse, in blobs of ten seconds: a windowed state with a series and its coverage, in a real store."""

from __future__ import annotations

import math
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any

import orjson

from contracts import Application, BaseEvent, Count, Coverage, Series, State, Topics
from contracts.records.named_states import named
from services.query.store import Entry, Update
from tests.services.query.windowed import departures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from services.query.dependencies import Dependencies
    from services.query.store import Store
    from tests.services.query.console.stage import Stage

RATE = 100
SECOND = timedelta(seconds=1)
BEGIN = datetime(2026, 5, 1, 8, tzinfo=UTC)


class Chunk(BaseEvent):
    """One second of a waveform."""

    patient: str
    samples: list[float]


class Blob(State, key="patient", window=10 * SECOND, grace=10 * SECOND):
    """Ten seconds of a waveform."""

    pulse: Annotated[list[float | None], Series(rate=RATE, of="samples", unit="mV")]
    covered: Annotated[list[list[int]], Coverage(step=SECOND, of="samples", rate=RATE)]
    chunks: Annotated[int, Count()]


VITALS = Application(name="vitals", event=Chunk, state=Blob, deduplicate=False, topics=Topics("vitals", replay=True))


def pulse(second: int) -> list[float]:
    """Return the samples of a second of a pulse with 72 beats a minute."""
    times = [second + number / RATE for number in range(RATE)]
    return [round(_beat(time * 1.2 % 1) + 0.02 * math.sin(9 * time), 4) for time in times]


def _beat(phase: float) -> float:
    waves = ((0.18, 0.12, 0.025), (0.27, -0.15, 0.010), (0.30, 1.2, 0.012), (0.34, -0.3, 0.012), (0.55, 0.25, 0.045))
    return sum(height * math.exp(-(((phase - at) / width) ** 2)) for at, height, width in waves)


class Ward:
    """The store, and the seconds of each patient that have arrived."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seconds: dict[str, set[int]] = {}
        self.stage: Stage | None = None

    def arrive(self, patient: str, seconds: Iterable[int]) -> None:
        """Store chunks of a patient, each of one second after BEGIN."""
        for second in seconds:
            self.seconds.setdefault(patient, set()).add(second)
            self._publish(patient, second // 10)

    def _publish(self, patient: str, blob: int) -> None:
        start = BEGIN + blob * 10 * SECOND
        chunks = [(BEGIN + one * SECOND, pulse(one)) for one in sorted(self.seconds[patient]) if one // 10 == blob]
        state: dict[str, Any] = {"chunks": len(chunks)}
        for name in ("pulse", "covered"):
            reducer = VITALS.reducers[name]
            state[name] = reducer.present(reduce(reducer.merge, [reducer.lift(one, ts, start) for ts, one in chunks]))
        value = orjson.dumps({"device_id": patient, "version": len(chunks), "state": state})
        at, last = (round(one.timestamp() * 1000) for one in (start, chunks[-1][0] + SECOND))
        offset = self.store.position(0) or 0
        entry = Entry(at, 0, len(chunks), last, 0, offset, value)
        changes = self.store.apply([Update(patient, 0, offset, entry)], {0: offset + 1})
        if self.stage is not None:
            self.stage.push.service.changed(changes)


@contextmanager
def ward(folder: Path) -> Iterator[tuple[Dependencies, Ward]]:
    """Give the dependencies of an instance with the vitals of patients, in one partition."""
    (state,) = named(VITALS).values()
    with departures(folder, state=state) as (dependencies, written):
        yield dependencies, Ward(written.store)
