"""From a record to a delta, in plain Python: the reference for what the job does with native expressions."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from contracts.model.application import Application
from contracts.model.tracing import FIELD, carried
from contracts.records import refusal
from contracts.records.record import Delta, Reason, Record, RecordError
from contracts.records.shape import feedback_shape, read
from contracts.types.key import composite_key
from contracts.wire import Answer

ANSWER_IDENTITY = ("enrichment", "fingerprint", "epoch", "version", "status", "ts")
"""The fields that two deliveries of one answer share."""
LATER_EPOCH = "epoch: later than that of the state, so no snapshot of this state was answered"


def _now() -> datetime:
    return datetime.now(UTC)


class Decoder:
    """Decodes the records of one application, for a state of this epoch; None takes answers of any.

    `clock` is that of the job: no record is later, whatever its stamp.
    """

    def __init__(
        self, application: Application, epoch: int | None = None, clock: Callable[[], datetime] = _now
    ) -> None:
        self.application = application
        self._epoch = epoch
        self._clock = clock

    @cached_property
    def _feedback_shape(self) -> Any:
        return feedback_shape(self.application)

    def event(self, record: Record) -> Delta:
        """An event as a delta. Raises RecordError."""
        values = read(self.application.event_shape, record.value, self.application.largest_record)
        key = composite_key(*(values[name] for name in self.application.state.keys))
        _check_key(self.application.key_name, key, record.key)
        self._check_time(values, record.timestamp, ("first_seen", "ts"))
        return Delta(
            device_id=key,
            first_seen=values["first_seen"],
            delta_id=f"event/{values['event_id']}",
            record_time=record.timestamp,
            ts=values["ts"],
            values=values,
            traceparent=self._context(values),
            event_offset=record.offset,
        )

    def feedback(self, record: Record) -> Delta:
        """The answer to a request as a delta. Raises RecordError."""
        values = read(self._feedback_shape, record.value, self.application.largest_record)
        slot, result = values["enrichment"], (values["result"] or {}).get(values["enrichment"])
        if (values["status"] == "result") != (result is not None):
            raise RecordError(Reason.INVALID_FIELD, "result")
        values["epoch"] = values["epoch"] or 0
        if self._epoch is not None and values["epoch"] > self._epoch:
            raise RecordError(Reason.INVALID_FIELD, LATER_EPOCH)
        _check_key("device_id", values["device_id"], record.key)
        self._check_time(values, record.timestamp, ("first_seen",))
        return Delta(
            device_id=values["device_id"],
            first_seen=values["first_seen"],
            delta_id="/".join(("feedback", *(str(values[name]) for name in ANSWER_IDENTITY))),
            record_time=record.timestamp,
            slot=slot,
            answer={name: values[name] for name in Answer.model_fields} | {"result": result},
            traceparent=self._context(values),
        )

    def _context(self, values: dict[str, Any]) -> str | None:
        return carried(values[FIELD]) if self.application.traced else None

    def _check_time(self, values: dict[str, Any], stamp: datetime, fields: tuple[str, ...]) -> None:
        """The times must be credible to both clocks, and by the earlier one the window must not be over."""
        now, skew, kept_for = self._clock(), self.application.skew, self.application.kept_for
        clock, whose = (now, refusal.JOB) if now < stamp else (stamp, refusal.STAMP)
        for field in fields:
            if values[field] > clock + skew:
                raise RecordError(Reason.INCREDIBLE_TIME, refusal.ahead(field, values[field], clock, whose, skew))
        if clock - values["first_seen"] > kept_for:
            raise RecordError(Reason.LATE, refusal.late(values["first_seen"], clock, whose, kept_for))


def _check_key(field: str, expected: str, given: bytes | None) -> None:
    """Records of one device are in order only under one key."""
    if given != expected.encode():
        raise RecordError(Reason.WRONG_KEY, refusal.wrong_key(field, given, expected))
