"""Reports a sensor whose temperature jumps by more than five degrees, or that is silent for an hour."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from stateloop import Application, Emit, Event, Processor, State

HOUR_MS = 3_600_000


class Measurement(Event):
    temperature: float


class Sensor(State, lifetime=timedelta(days=30)):
    temperature: float
    jumps: int
    is_silent: bool


class Jumps(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.handle = handle
        self.sensor = handle.getValueState("sensor", "temperature DOUBLE, jumps BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            before, jumps = self.sensor.get() or (row.temperature, 0)
            jumps += abs(row.temperature - before) > 5
            self.sensor.update((row.temperature, jumps))
            for time in self.handle.listTimers():
                self.handle.deleteTimer(time)
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + HOUR_MS)
            yield Row(temperature=row.temperature, jumps=jumps, is_silent=False)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        temperature, jumps = self.sensor.get()
        yield Row(temperature=temperature, jumps=jumps, is_silent=True)


app = Application(
    name="sensors", event=Measurement, state=Sensor, processor=Processor(Jumps, version=1), emit=Emit.BATCH
)
