"""The interface of reducers: the lift of a value to a partial, the merge of partials, and both in Spark SQL."""

from abc import abstractmethod
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.types.columns import without_none
from contracts.types.declaration import Declaration
from contracts.types.filters import Filter

ORDERED = (str, int, float, bool, datetime)
NUMBERS = (int, float)


@dataclass(frozen=True)
class Reducer(Declaration):
    """One way to merge the values of an event field. `of` names that field; by default it has the state field's name.

    The job reduces by `lift_sql`, an expression of each value, and `sql`, an aggregate expression. The fold, which
    tests run, reduces in Python: `lift` makes a partial of each value, `merge` one partial of two, `present` the
    published value. Both give the same result for the same values, in any order and grouping, so `merge` is
    associative and commutative. Neither sees a null.

    A reducer is a frozen dataclass that declares `of` as a field. `stateloop.testing.reducers.check_reducer` checks
    one: the SQL against the fold, and the laws of `merge`.
    """

    where: Filter | None = field(default=None, kw_only=True)
    """The events whose values are reduced; by default all. The value of any other event counts as null."""
    alias: str | None = field(default=None, kw_only=True)
    """The first name of the field. Feedback has the answers of the field's enrichment, and of those that need it, under
    this name, so a renamed field keeps them."""

    depends_on_order: ClassVar[bool] = False
    """Whether the order of merges may change a float result within its rounding error.

    After a crash the job may merge in another order, so an enrichment that needs such a float has to round it.
    """

    @property
    @abstractmethod
    def of(self) -> str | None:
        """The event field that is reduced; None for the state field's own name."""

    @abstractmethod
    def gives(self, source: Any) -> Any:
        """The annotation of the state field for an event field of this annotation.

        Raises TypeError if the event field does not fit; the message completes "<reducer> …".
        """

    def within(self, window: timedelta) -> Self:  # noqa: ARG002  # only reducers of positions in the window need it
        """The reducer for windows of this size. Raises DeclarationError for a size that it cannot reduce."""
        return self

    @property
    def largest(self) -> int | None:
        """The size of the largest published value, in bytes of JSON; None if the declaration does not bound it."""
        return None

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the published value beyond its type, such as a unit, under names with `x-`."""
        return {}

    @abstractmethod
    def lift(self, value: Any, ts: datetime, start: datetime) -> Any:
        """The partial of one value, which is never None, of an event at `ts` in the window that starts at `start`."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """The partial of the values of both. It changes neither."""

    @abstractmethod
    def present(self, partial: Any | None) -> Any:
        """The published value of a partial; of None when no value was seen."""

    def lift_sql(self, x: str) -> str:
        """The Spark SQL of what `sql` takes as its `x`, computed once for each event; by default the value itself.

        It is over the expression `x` of the value and the columns `ts` and `first_seen`, of type TIMESTAMP: the time
        of the event and the start of the window. The expression `x` is null for an event without the value, and in
        every row that is no event.
        """
        return x

    @abstractmethod
    def sql(self, x: str) -> str:
        """The Spark SQL of the published value: aggregates over the expression `x` and the column `ts`.

        The expression `x` is the result of `lift_sql`. Real-time mode runs built-in functions only, no Python.
        """

    @override
    def __str__(self) -> str:
        """The reducer as it is declared, without the defaults."""
        arguments = (
            (parameter.name, getattr(self, parameter.name), parameter.default)
            for parameter in fields(self)
            if parameter.repr
        )
        spelled = ", ".join(f"{name}={value!r}" for name, value, default in arguments if value != default)
        return f"{type(self).__name__}({spelled})"


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
