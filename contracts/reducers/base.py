"""What a reducer is: the lift of a value to a delta, the merge of deltas, and the same in one Spark SQL expression."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from contracts.errors import DeclarationError
from contracts.types.columns import without_none

ORDERED = (str, int, float, bool, datetime)
NUMBERS = (int, float)


@dataclass(frozen=True)
class Reducer(ABC):
    """One way to merge the values of an event field. `of` names that field; by default it has the state field's name.

    `merge` is associative and commutative, so neither order nor grouping of the deltas matters. Nulls are ignored.
    """

    depends_on_order: ClassVar[bool] = False
    """Whether a float that it gives may differ, within its rounding error, with the order in which deltas are merged.

    After a crash the job may merge in another order, so an enrichment that needs such a float has to round it.
    """

    @property
    @abstractmethod
    def of(self) -> str | None:
        """The event field that is reduced; None for the state field's own name."""

    @abstractmethod
    def gives(self, source: Any) -> Any:
        """The annotation of the state field for a source of this annotation. Raises TypeError if it does not fit."""

    @abstractmethod
    def lift(self, value: Any, ts: datetime) -> Any:
        """The partial that stands for one value, seen at `ts`."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """The partial that stands for both."""

    @abstractmethod
    def present(self, partial: Any | None) -> Any:
        """The published value of a partial; of None when no value was seen."""

    @abstractmethod
    def sql(self, x: str) -> str:
        """The Spark SQL expression of the published value, over the column `x` and the event's time `ts`."""


def needs_type(source: Any, allowed: tuple[type, ...]) -> Any:
    """The source's annotation without None. Raises TypeError, naming what is allowed, when it is not among them."""
    inner, _ = without_none(source)
    if inner in allowed:
        return inner
    names = ", ".join(kind.__name__ for kind in allowed)
    raise TypeError(f"takes a field of type {names}, not {getattr(inner, '__name__', inner)}")


def needs_positive(where: str, value: int, most: int) -> None:
    """Raises DeclarationError unless 1 <= value <= most."""
    if not 1 <= value <= most:
        raise DeclarationError(where, f"got {value}", f"Write a number from 1 to {most}")
