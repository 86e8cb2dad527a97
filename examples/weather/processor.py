"""Alerts by a processor: the temperature of a station changes by more than a threshold from one reading to the next.

No merge expresses it, since it depends on the order of the readings, and on the threshold at the time of each.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, BaseModel
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from typing_extensions import override

from examples.weather.readings import Reading
from stateloop import Application, Emit, Processor, QueryOptions, State, Topics

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
YEAR = timedelta(days=366)
RECENT = 10


class StationRecord(Reading):
    """A reading, or a new threshold of the station. They share a topic, because their order decides."""

    threshold: float | None = None
    """In degrees. Without one, a station has no alerts."""


class TemperatureAlert(BaseModel):
    """A change by more than the threshold."""

    ts: AwareDatetime
    before: float
    after: float
    threshold: float


class StationState(State, key="station", lifetime=YEAR):
    """The last temperature of a station, and its alerts."""

    temperature: float | None
    threshold: float | None
    alerts: int
    recent: list[TemperatureAlert]
    """The last ten, in the order of time."""


class TemperatureChanges(StatefulProcessor):
    """Compares each reading with the one before."""

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        self.station = handle.getValueState("station", "temperature DOUBLE, threshold DOUBLE, alerts BIGINT")
        self.recent = handle.getListState("recent", "ts BIGINT, before DOUBLE, after DOUBLE, threshold DOUBLE")

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        """Yield the state after each record."""
        for row in rows:
            before, threshold, alerts = self.station.get() or (None, None, 0)
            threshold = threshold if row.threshold is None else row.threshold
            after = before if row.temperature is None else row.temperature
            if before is not None and threshold is not None and abs(after - before) > threshold:
                alerts += 1
                alert = (row.ts - EPOCH) // MICROSECOND, before, after, threshold
                self.recent.put([*self.recent.get(), alert][-RECENT:])
            self.station.update((after, threshold, alerts))
            recent = [_alert(stored) for stored in self.recent.get()]
            yield Row(temperature=after, threshold=threshold, alerts=alerts, recent=recent)


def _alert(stored: tuple[int, float, float, float]) -> dict[str, Any]:
    """Return an alert of the state. A variable has no times, but numbers."""
    ts, before, after, threshold = stored
    return {"ts": EPOCH + ts * MICROSECOND, "before": before, "after": after, "threshold": threshold}


app = Application(
    name="temperature-changes",
    event=StationRecord,
    state=StationState,
    processor=Processor(TemperatureChanges),
    emit=Emit.BATCH,
    topics=Topics(prefix="temperature_changes_", replay=True),
    query=QueryOptions(indexes=("state.alerts",)),
)
