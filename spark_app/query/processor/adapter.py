"""Runs a processor in Spark's Python workers, record by record.

A record on which the processor raises becomes a dead letter, and the variables are as before it. Otherwise Spark
would repeat the batch without end, and one record would stop all keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ConfigDict, create_model
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StringType, StructType
from typing_extensions import override

from contracts.errors import AUTHOR_ERRORS, described
from contracts.records.numbers import NULL, unwritable
from contracts.records.record import Reason, Record
from contracts.records.refusal import oversized
from contracts.wire import LARGEST_HEAD, NEVER_WRITTEN, Answer, DeadLetter
from spark_app.query.processor.handle import RESERVED, BufferedHandle
from spark_app.query.processor.stored import StoredWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
        ValueState,
    )

    from contracts.model.state import State
    from spark_app.query.processor.handle import Schemas
    from spark_app.query.processor.stored import Json

DELTA, RESULT = "delta", "result"
"""The columns that the adapter reads and writes: JSON of a delta or dead letter, of a stored window or dead letter."""
CONTENT = StructType().add("content", StringType())
LONG_NUMBER = re.compile(rb"\d{19}")
"""What may be an integer of more than 64 bits, in JSON."""
MODELS = 16


@dataclass(frozen=True)
class AdapterLayout:
    """The parts of the application that the adapter uses."""

    state: type[State]
    fields: tuple[str, ...]
    """The fields of the state without the slots."""
    event_fields: tuple[str, ...]
    times: tuple[str, ...]
    """The fields of the event that are times."""
    slots: Mapping[str, type[BaseModel]]
    """The model of the result of each enrichment."""
    events: str
    """The topic of events."""
    kept_for: timedelta
    """The time from a window's start after which it can expire."""
    look_again: timedelta
    """The interval at which the adapter then checks whether the watermark has passed the window's expiry."""
    largest: int
    """The maximum size of a state in bytes."""
    epoch: int


class ProcessorAdapter(StatefulProcessor):
    """A PySpark processor that runs the application's own."""

    def __init__(self, processor: type[StatefulProcessor], schemas: Schemas, layout: AdapterLayout) -> None:
        self._of = processor
        self._schemas = schemas
        self._layout = layout
        self._row = Row(*layout.event_fields, *layout.slots)

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._stored: ValueState = handle.getValueState(RESERVED, CONTENT)
        self._handle = BufferedHandle(handle, self._schemas)
        self._model = state_model(self._layout.state, self._layout.fields)
        self._processor = self._of()
        self._processor.init(self._handle)

    @override
    def close(self) -> None:
        self._processor.close()

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Any]:
        deltas: list[Json] = []
        for row in rows:
            delta = {"answers": {}} | orjson.loads(row[DELTA])
            if "dead_letter" in delta:
                yield Row(**{RESULT: row[DELTA]})
            else:
                deltas.append(delta)
        if deltas:
            yield from self._merge(sorted(deltas, key=arrival), timerValues)

    @override
    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Any]:
        window = self._load()
        if window is None:
            return
        time = expiredTimerInfo.getExpiryTimeInMs()
        if time == window.timer:
            self._expire(window, timerValues)
            return
        try:
            state = self._state(self._processor.handleExpiredTimer(window.key, timerValues, expiredTimerInfo))
        except AUTHOR_ERRORS as error:  # one key must not stop all others
            self._handle.journal.undo()
            yield self._failure(window, error, {"topic": self._layout.events, "record_time": time * 1000})
            state = None
        if state is not None:
            window.version += 1
            window.state = state
        self._save(window)
        if state is not None:
            yield Row(**{RESULT: window.encode()})

    def _merge(self, deltas: list[Json], timers: TimerValues) -> Iterator[Row]:
        """Pass the deltas of one window to the processor, and store the result."""
        window = self._load() or StoredWindow(deltas[0]["device_id"], deltas[0]["first_seen"])
        before, is_published = window.version, False
        for delta in deltas:
            try:
                state = self._state(self._processor.handleInputRows(window.key, iter([self._given(delta)]), timers))
            except AUTHOR_ERRORS as error:  # one record must not stop all others
                self._handle.journal.undo()
                yield self._failure(window, error, delta)
                if not delta["answers"]:
                    continue
                state = None  # without the answer, the worker would request it again and again
            self._handle.journal.keep()
            window.add(delta, self._layout.slots)
            window.state = window.state if state is None else state
            is_published |= state is not None or bool(delta["answers"])
        if window.version > before and window.timer is None:
            self._handle.claim_timer(self._due(window, timers))
        self._save(window, is_changed=window.version > before)
        if is_published and window.state is not None:
            yield Row(**{RESULT: window.encode()})

    def _expire(self, window: StoredWindow, timers: TimerValues) -> None:
        """Remove a window that the watermark has passed, or check again later."""
        if timers.getCurrentWatermarkInMs() * 1000 >= window.first_seen:
            self._handle.clear()
            self._stored.clear()
        else:
            self._handle.claim_timer(self._due(window, timers))
            self._save(window)

    def _due(self, window: StoredWindow, timers: TimerValues) -> int:
        """Return when the window may have expired. In a replay, this does not depend on the clock."""
        by_clock = window.first_seen // 1000 + milliseconds(self._layout.kept_for)
        return max(by_clock, timers.getCurrentProcessingTimeInMs()) + milliseconds(self._layout.look_again)

    def _load(self) -> StoredWindow | None:
        content = self._stored.get()
        window = None if content is None else StoredWindow.decode(content[0])
        self._handle.own_timer = None if window is None else window.timer
        return window

    def _save(self, window: StoredWindow, *, is_changed: bool = True) -> None:
        self._handle.flush()
        window.timer = self._handle.own_timer
        if is_changed:
            self._stored.update((window.encode(),))

    def _given(self, delta: Json) -> Row:
        """Return the row of a delta for the processor."""
        event, answers, times = delta["event"], delta["answers"], self._layout.times
        values = [
            datetime.fromisoformat(event[name]) if name in times and name in event else event.get(name)
            for name in self._layout.event_fields
        ]
        slots = (Answer.model_validate(answers[slot]) if slot in answers else None for slot in self._layout.slots)
        return self._row(*values, *slots)

    def _state(self, yielded: Iterable[Any]) -> Json | None:
        """Return the last state that the processor yields, as JSON. Raises its errors, also for an invalid state."""
        last = None
        for row in yielded:
            last = row
        if last is None:
            return None
        if not isinstance(last, Row):
            raise TypeError(
                f"it yielded a {type(last).__name__}, and a state is a pyspark.sql.Row: write Row(name=value)"
            )
        state = self._model.model_validate(last.asDict(recursive=True)).model_dump(mode="json", exclude_none=True)
        encoded = orjson.dumps(state)
        may_be_unwritable = NULL in encoded or LONG_NUMBER.search(encoded)
        if may_be_unwritable and (problem := next(unwritable(state), None)):
            raise ValueError(f"{problem.field} {problem.detail}")
        if len(encoded) > self._layout.largest:
            raise ValueError(f"the state has {oversized(len(encoded), self._layout.largest)}")
        return state

    def _failure(self, window: StoredWindow, error: BaseException, origin: Json) -> Row:
        """Return the dead letter of a record, or of a timer, on which the processor raised."""
        content = origin.get("event") or origin.get("answers")
        position = origin["topic"], origin.get("partition", NEVER_WRITTEN), origin.get("offset", NEVER_WRITTEN)
        record = Record(*position, origin["record_time"] // 1000, None, None)
        head = orjson.dumps(content).decode()[:LARGEST_HEAD] if content else None
        facts = {"epoch": self._layout.epoch, "head": head}
        dead_letter = DeadLetter.of(record, Reason.PROCESSOR_FAILED, described(error), **facts)
        known = {"device_id": window.device_id, "first_seen": window.first_seen, "is_failure": True}
        return Row(**{RESULT: orjson.dumps(known | {"dead_letter": dead_letter.encode().decode()}).decode()})


def arrival(delta: Json) -> tuple[int, str, int, int]:
    """Return a key that orders deltas by their records' times, and deltas of one time by their positions."""
    return delta["record_time"], delta["topic"], delta["partition"], delta["offset"]


@lru_cache(MODELS)
def state_model(state: type[State], fields: tuple[str, ...]) -> type[BaseModel]:
    """Return the model of a processor's rows. Spark makes an adapter for each partition of each batch."""
    known: dict[str, Any] = {name: (state.model_fields[name].annotation | None, None) for name in fields}  # type: ignore[operator]
    return create_model(state.__name__, __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **known)


def milliseconds(duration: timedelta) -> int:
    """Return a duration in the unit of Spark's timers."""
    return duration // timedelta(milliseconds=1)
