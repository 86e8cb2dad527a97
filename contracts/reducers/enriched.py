"""The reducer of a slot: what an enrichment answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.reducers.base import Reducer
from contracts.reducers.times import comparable, order
from contracts.types.bounds import bounds
from contracts.types.columns import check_nulls, is_model, without_none


@dataclass(frozen=True)
class Enriched(Reducer):
    """The slot that an enrichment writes: the answer computed from the highest version of the state.

    Of answers to the same version the largest wins, field by field (version, status, ts, fingerprint, reason, spent,
    result), so that a repeated or reordered answer changes nothing. Its values are answers, not a field of the event.
    """

    of: str | None = None

    def __post_init__(self) -> None:
        if self.where is not None:
            write = "Write Enriched(), and when= in the enrichment"
            raise DeclarationError("Enriched(where=…)", "an answer has no field of the event", write)

    @override
    def gives(self, source: Any) -> Any:
        inner, optional = without_none(source)
        if not optional or not is_model(inner):
            raise TypeError("is for a pydantic model or None")
        comparable(inner)
        bounds(inner)
        check_nulls(inner)
        return source

    @override
    def lift(self, value: Any, ts: datetime, start: datetime) -> Any:
        return value

    @override
    def merge(self, one: Any, other: Any) -> Any:
        return max(one, other, key=order)

    @override
    def present(self, partial: Any | None) -> Any:
        return partial

    @override
    def sql(self, x: str) -> str:
        return f"max({x})"
