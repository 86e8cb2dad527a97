"""The fields that the pipeline stores with each window of a processor: those that a merge computes by aggregates.

It is one text of JSON, which the step also returns to the JVM: an Arrow column costs five microseconds for
each key and batch, and there would be eleven.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import orjson

from contracts.reducers.times import order
from contracts.types.columns import is_model, without_none
from contracts.types.quantize import EPOCH
from contracts.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

Json = dict[str, Any]


@dataclass(slots=True)
class StoredWindow:
    """One window of a key: the parts of its snapshot, with the last state. Times are microseconds."""

    device_id: str
    first_seen: int
    version: int = 0
    """The number of deltas merged, and of timers that yielded a state."""
    as_of: int | None = None
    device_partition: int | None = None
    record_partition: int | None = None
    event_offset: int | None = None
    traceparent: str | None = None
    """The trace context of the record with the largest time; of several such the largest, so that no order decides."""
    answers: dict[str, Json] = field(default_factory=dict)
    state: Json | None = None
    """The last state that the processor yielded."""
    timer: int | None = None
    """The time at which to check whether the window has expired, in milliseconds."""

    @property
    def key(self) -> tuple[str, datetime]:
        """The key of the state, and the start of the window."""
        return self.device_id, instant(self.first_seen)

    def add(self, delta: Json, slots: Mapping[str, type[BaseModel]]) -> None:
        """Merge a delta. `slots` has the model of each enrichment's result."""
        context = delta["record_time"], delta.get("traceparent") or ""
        if self.as_of is None or context > (self.as_of, self.traceparent or ""):
            self.traceparent = context[1] or None
        self.version += 1
        self.as_of = largest(self.as_of, delta["record_time"])
        self.device_partition = largest(self.device_partition, delta.get("device_partition"))
        self.record_partition = largest(self.record_partition, delta.get("partition"))
        self.event_offset = largest(self.event_offset, delta.get("event_offset"))
        for slot, answer in delta["answers"].items():
            former = self.answers.get(slot)
            by = partial(answer_order, slots[slot])
            self.answers[slot] = answer if former is None else max(former, answer, key=by)

    def encode(self) -> str:
        """Return it as JSON."""
        return orjson.dumps(self).decode()

    @classmethod
    def decode(cls, content: str) -> StoredWindow:
        """Decode a value of `encode`."""
        return cls(**orjson.loads(content))


def instant(microseconds: int) -> datetime:
    """Return the time that is `microseconds` after the start of 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def largest(left: int | None, right: int | None) -> int | None:
    """Return the larger of two numbers; of one that is missing, the other."""
    return right if left is None else left if right is None else max(left, right)


def answer_order(result: type[BaseModel], answer: Json) -> list[Any]:
    """Return the order of answers: `Enriched` stores the greatest one. Times are of one width, and order as text."""
    fields = answer | {"result": _complete(result, answer.get("result"))}
    return [order(fields.get(name)) for name in Answer.model_fields]


def _complete(annotation: Any, value: Any) -> Any:
    """Return a value of JSON with its null fields, which Spark leaves out, in the order of their declaration."""
    kind, _ = without_none(annotation)
    if isinstance(value, dict) and is_model(kind):
        return {name: _complete(field.annotation, value.get(name)) for name, field in kind.model_fields.items()}
    if isinstance(value, list):
        return [_complete(get_args(kind)[0], item) for item in value]
    return value
