"""Decodes records to deltas in plain Python: the reference for the native expressions of the job."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from contracts.model.application import Application
from contracts.model.tracing import FIELD, carried
from contracts.model.windows import since_last_start, window_starts
from contracts.records import refusal
from contracts.records.record import Delta, Reason, Record, RecordError
from contracts.records.shape import feedback_shape, read
from contracts.types.key import LARGEST_KEY, composite_key
from contracts.wire import Answer
from contracts.wire.partition import partition

ANSWER_IDENTITY = ("enrichment", "fingerprint", "epoch", "version", "status", "ts")
"""The fields that two deliveries of one answer share."""
LATER_EPOCH = "epoch: later than that of the state, so no snapshot of this state was answered"


def _now() -> datetime:
    return datetime.now(UTC)


class Decoder:
    """Decodes the records of one application, for a state of this epoch; None takes answers of any.

    `clock` is the job's clock: no record is later, whatever its stamp. Each topic has `partitions` partitions; None
    takes every record for one in the partition of its key.
    """

    def __init__(
        self,
        application: Application,
        epoch: int | None = None,
        clock: Callable[[], datetime] = _now,
        partitions: int | None = None,
    ) -> None:
        self.application = application
        self._epoch = epoch
        self._clock = clock
        self._partitions = partitions

    @cached_property
    def _feedback_shape(self) -> Any:
        return feedback_shape(self.application)

    def event(self, record: Record) -> tuple[Delta, ...]:
        """An event as deltas, one for each of its windows that is not over; none if the state's filter excludes it.

        Raises RecordError.
        """
        application, is_windowed = self.application, self.application.state.is_windowed
        values = read(application.event_shape, record.value, application.largest_record)
        if application.state.where is not None and not application.state.where.matches(values):
            return ()
        key = self._key(values)
        if not is_windowed:
            _check_key(application.key_name, key, record.key)
        event_id = values["event_id"] if application.deduplicate else f"{record.partition}/{record.offset}"
        return tuple(
            Delta(
                device_id=key,
                first_seen=start,
                delta_id=f"event/{event_id}",
                record_time=record.timestamp,
                ts=values["ts"],
                values=values,
                traceparent=self._context(values),
                event_offset=None if is_windowed else self._offset(key, record),
            )
            for start in self._windows(values, record.timestamp)
        )

    def feedback(self, record: Record) -> Delta:
        """The answer to a request as a delta. Raises RecordError."""
        values = read(self._feedback_shape, record.value, self.application.largest_record)
        name = values["enrichment"]
        result = (values["result"] or {}).get(name)
        if (values["status"] == "result") != (result is not None):
            raise RecordError(Reason.INVALID_FIELD, "result")
        values["epoch"] = values["epoch"] or 0
        if self._epoch is not None and values["epoch"] > self._epoch:
            raise RecordError(Reason.INVALID_FIELD, LATER_EPOCH)
        state, start = self.application.state, values["first_seen"]
        if state.is_windowed and since_last_start(state, start):
            raise RecordError(Reason.INVALID_FIELD, refusal.NO_WINDOW)
        _check_key("device_id", values["device_id"], record.key)
        self._check_start(start, *self._checked_clock(values, ("first_seen",), record.timestamp))
        return Delta(
            device_id=values["device_id"],
            first_seen=start,
            delta_id="/".join(("feedback", *(str(values[name]) for name in ANSWER_IDENTITY))),
            record_time=record.timestamp,
            slot=self.application.by_recorded_name[name].name,
            answer={name: values[name] for name in Answer.model_fields} | {"result": result},
            traceparent=self._context(values),
        )

    def _context(self, values: dict[str, Any]) -> str | None:
        return carried(values[FIELD]) if self.application.traced else None

    def _offset(self, key: str, record: Record) -> int | None:
        """The offset of an event; None if it is not in the partition of its key."""
        is_displaced = self._partitions is not None and record.partition != partition(key.encode(), self._partitions)
        return None if is_displaced else record.offset

    def _key(self, values: dict[str, Any]) -> str:
        """The key of an event. Raises RecordError for several fields that are too large together."""
        key = composite_key(*(values[name] for name in self.application.state.keys))
        if len(key.encode()) > LARGEST_KEY:
            raise RecordError(Reason.INVALID_FIELD, refusal.large_key(self.application.key_name, key))
        return key

    def _windows(self, values: dict[str, Any], stamp: datetime) -> tuple[datetime, ...]:
        """The starts of an event's windows that are not over. Raises RecordError if all are."""
        state, kept_for = self.application.state, self.application.kept_for
        if not state.is_windowed:
            self._check_start(values["first_seen"], *self._checked_clock(values, ("first_seen", "ts"), stamp))
            return (values["first_seen"],)
        clock, whose = self._checked_clock(values, ("ts",), stamp)
        ts = values["ts"]
        if clock - ts + since_last_start(state, ts) > kept_for:
            raise RecordError(Reason.LATE, refusal.late_windows(ts, clock, whose, state.grace))
        return tuple(start for start in window_starts(state, ts) if clock - start <= kept_for)

    def _checked_clock(self, values: dict[str, Any], fields: tuple[str, ...], stamp: datetime) -> tuple[datetime, str]:
        """The earlier of both clocks, and which one that is. Raises RecordError for a time that is ahead of it."""
        now, skew = self._clock(), self.application.skew
        clock, whose = (now, refusal.JOB) if now < stamp else (stamp, refusal.STAMP)
        for field in fields:
            if values[field] > clock + skew:
                raise RecordError(Reason.INCREDIBLE_TIME, refusal.ahead(field, values[field], clock, whose, skew))
        return clock, whose

    def _check_start(self, start: datetime, clock: datetime, whose: str) -> None:
        """Raise RecordError if the window that starts then is over by the clock."""
        if clock - start > self.application.kept_for:
            raise RecordError(Reason.LATE, refusal.late(start, clock, whose, self.application.kept_for))


def _check_key(field: str, expected: str, key: bytes | None) -> None:
    """Raise RecordError for a record with another key than its device's: only one key keeps the order of records."""
    if key != expected.encode():
        raise RecordError(Reason.WRONG_KEY, refusal.wrong_key(field, key, expected))
