"""From a record to a delta, in plain Python: the reference for what the job does with native expressions."""

from datetime import datetime
from functools import cached_property
from typing import Any

from contracts.application import Application
from contracts.record import Delta, Reason, Record, Refused
from contracts.shape import feedback_shape, read
from contracts.tracing import FIELD, carried
from contracts.wire import Answer


class Decoder:
    """Decodes the records of one application."""

    def __init__(self, application: Application) -> None:
        self.application = application

    @cached_property
    def _feedback_shape(self) -> Any:
        return feedback_shape(self.application)

    def event(self, record: Record) -> Delta:
        """An event as a delta. Raises Refused."""
        values = read(self.application.event, record.value, self.application.largest_record)
        self._check_time(values["first_seen"], values["ts"], record.timestamp)
        return Delta(
            device_id=values[self.application.state.key],
            first_seen=values["first_seen"],
            delta_id=f"event/{values['event_id']}",
            record_time=record.timestamp,
            ts=values["ts"],
            values=values,
            traceparent=self._context(values),
        )

    def feedback(self, record: Record) -> Delta:
        """The answer to a request as a delta. Raises Refused."""
        values = read(self._feedback_shape, record.value, self.application.largest_record)
        slot, result = values["enrichment"], (values["result"] or {}).get(values["enrichment"])
        if (values["status"] == "result") != (result is not None):
            raise Refused(Reason.INVALID_FIELD, "result")
        self._check_time(values["first_seen"], values["first_seen"], record.timestamp)
        return Delta(
            device_id=values["device_id"],
            first_seen=values["first_seen"],
            delta_id="/".join(
                ("feedback", slot, values["fingerprint"], str(values["version"]), values["status"], str(values["ts"]))
            ),
            record_time=record.timestamp,
            slot=slot,
            answer={name: values[name] for name in Answer.model_fields} | {"result": result},
            traceparent=self._context(values),
        )

    def _context(self, values: dict[str, Any]) -> str | None:
        return carried(values[FIELD]) if self.application.traced else None

    def _check_time(self, first_seen: datetime, ts: datetime, record_time: datetime) -> None:
        """Both times must be credible to the broker's clock, and by that clock the life must not have ended."""
        if max(first_seen, ts) > record_time + self.application.skew:
            raise Refused(Reason.INCREDIBLE_TIME)
        if record_time - first_seen > self.application.kept_for:
            raise Refused(Reason.LATE)
