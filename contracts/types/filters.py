"""Filters of events: one declaration, evaluated as a Spark SQL expression and in Python with the same result.

Both follow SQL's three-valued logic: a comparison with a null is null, and only true passes. Values are ordered as
Spark orders them: text by its UTF-8 bytes, NaN above every other number. Of a whole number and a float, both are
compared as floats.
"""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel
from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.types.columns import choices, text, without_none
from contracts.types.quantize import EPOCH, MICROSECOND

Operand = str | int | float | bool | datetime
Column = Callable[[str], str]
"""The SQL of the column that has a field of the event."""

LONG = 1 << 63
EQUALITY: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}
ORDERING: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARISONS = EQUALITY | ORDERING
EXAMPLES = {str: "a text", int: "a number", float: "a number", bool: "True or False", datetime: "a datetime"}
"""The operands that fit a field of each type, in words."""


class Filter(ABC):
    """A condition on an event, such as `field("status") == "departed"`. Combine filters with `&`, `|` and `~`.

    It is the argument `where` of a state, or of a reducer. `fields` has the fields that it reads, `sql` gives the Spark
    SQL, and `matches` evaluates it in Python.
    """

    @property
    @abstractmethod
    def fields(self) -> frozenset[str]:
        """The fields of the event that the filter reads."""

    @abstractmethod
    def sql(self, column: Column) -> str:
        """The Spark SQL of the condition: true, false or null. An event passes only where it is true."""

    @abstractmethod
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        """Return whether the values of an event meet the condition; None for SQL's null. A missing field is null."""

    @abstractmethod
    def check(self, event: type[BaseModel], where: str) -> None:
        """Check the fields and operands against the event's types. Raises DeclarationError."""

    def __and__(self, other: "Filter") -> "Filter":
        return Conjunction(self, _filter("&", other))

    def __or__(self, other: "Filter") -> "Filter":
        return Disjunction(self, _filter("|", other))

    def __invert__(self) -> "Filter":
        return Negation(self)

    def __bool__(self) -> bool:
        write = "Write &, | and ~ instead of and, or, not and chained comparisons, with parentheses around comparisons"
        raise DeclarationError(repr(self), "a filter is neither true nor false before it has an event", write)


@dataclass(frozen=True, eq=False)
class FieldReference:
    """A field of the event, by name. A comparison with an operand is a filter."""

    name: str

    def __eq__(self, operand: Operand) -> Filter:  # type: ignore[override]  # a comparison declares a filter
        return Comparison(self.name, "==", _operand(self.name, operand))

    def __ne__(self, operand: Operand) -> Filter:  # type: ignore[override]
        return Comparison(self.name, "!=", _operand(self.name, operand))

    def __lt__(self, operand: Operand) -> Filter:
        return Comparison(self.name, "<", _operand(self.name, operand))

    def __le__(self, operand: Operand) -> Filter:
        return Comparison(self.name, "<=", _operand(self.name, operand))

    def __gt__(self, operand: Operand) -> Filter:
        return Comparison(self.name, ">", _operand(self.name, operand))

    def __ge__(self, operand: Operand) -> Filter:
        return Comparison(self.name, ">=", _operand(self.name, operand))

    def __and__(self, _: object) -> Filter:
        """Raise DeclarationError: Python reads `field("a") == "x" & field("b")` as `field("a") == ("x" & …)`."""
        raise _no_filter("&", self)

    def __or__(self, _: object) -> Filter:
        """Raise DeclarationError, as `&` does."""
        raise _no_filter("|", self)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Filter:
        """Raise DeclarationError."""
        write = f"Write ~(field({self.name!r}) == …)"
        raise DeclarationError(f"~field({self.name!r})", "is no filter, for nothing is compared", write)

    __hash__ = None  # type: ignore[assignment]  # == gives a filter, so a reference cannot be looked up

    def is_in(self, *operands: Operand) -> Filter:
        """The field equals one of these."""
        if not operands:
            raise DeclarationError(f"field({self.name!r}).is_in()", "has no operands", "Write is_in('a', 'b')")
        return IsIn(self.name, tuple(_operand(self.name, operand) for operand in operands))

    def is_null(self) -> Filter:
        """The field is null or missing."""
        return NullTest(self.name, is_null=True)

    def is_not_null(self) -> Filter:
        """The field has a value."""
        return NullTest(self.name, is_null=False)


def field(name: str) -> FieldReference:
    """The field of the event with this name, to declare a filter: `field("status") == "departed"`.

    Compare it with a text, a number, a bool or a time by `==`, `!=`, `<`, `<=`, `>`, `>=`; or call `is_in("a", "b")`,
    `is_null()` or `is_not_null()`.
    """
    return FieldReference(name)


@dataclass(frozen=True, repr=False)
class FieldFilter(Filter):
    """A filter of one field."""

    name: str

    @property
    @override
    def fields(self) -> frozenset[str]:
        return frozenset((self.name,))


@dataclass(frozen=True, repr=False)
class Comparison(FieldFilter):
    """A field compared with an operand."""

    sign: str
    operand: Operand

    @override
    def __repr__(self) -> str:
        return f"field({self.name!r}) {self.sign} {self.operand!r}"

    @override
    def sql(self, column: Column) -> str:
        return f"({column(self.name)} {'=' if self.sign == '==' else self.sign} {_literal(self.operand)})"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        value = values.get(self.name)
        return None if value is None else _compare(self.sign, value, self.operand)

    @override
    def check(self, event: type[BaseModel], where: str) -> None:
        declared = _declared(event, self.name, where)
        _check_operand(declared, self.operand, self, where, is_equality=self.sign in EQUALITY)
        if self.sign in ORDERING and declared is bool:
            raise DeclarationError(f"{where}: {self!r}", "a bool has no order", "Write == True or == False")


@dataclass(frozen=True, repr=False)
class IsIn(FieldFilter):
    """A field that equals one of some operands."""

    operands: tuple[Operand, ...]

    @override
    def __repr__(self) -> str:
        return f"field({self.name!r}).is_in({', '.join(map(repr, self.operands))})"

    @override
    def sql(self, column: Column) -> str:
        x, literals = column(self.name), [_literal(operand) for operand in self.operands]
        if any(isinstance(operand, float) for operand in self.operands):  # IN takes one common type for all operands
            return f"({' OR '.join(f'{x} = {literal}' for literal in literals)})"
        return f"({x} IN ({', '.join(literals)}))"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        value = values.get(self.name)
        return None if value is None else any(_compare("==", value, operand) for operand in self.operands)

    @override
    def check(self, event: type[BaseModel], where: str) -> None:
        declared = _declared(event, self.name, where)
        for operand in self.operands:
            _check_operand(declared, operand, self, where, is_equality=True)


@dataclass(frozen=True, repr=False)
class NullTest(FieldFilter):
    """A field that has no value, or that has one. It is never null itself."""

    is_null: bool

    @override
    def __repr__(self) -> str:
        return f"field({self.name!r}).{'is_null' if self.is_null else 'is_not_null'}()"

    @override
    def sql(self, column: Column) -> str:
        return f"({column(self.name)} IS {'' if self.is_null else 'NOT '}NULL)"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool:
        return (values.get(self.name) is None) is self.is_null

    @override
    def check(self, event: type[BaseModel], where: str) -> None:
        _declared(event, self.name, where)


@dataclass(frozen=True, repr=False)
class Conjunction(Filter):
    """Both conditions."""

    left: Filter
    right: Filter

    @override
    def __repr__(self) -> str:
        return f"({self.left!r}) & ({self.right!r})"

    @property
    @override
    def fields(self) -> frozenset[str]:
        return self.left.fields | self.right.fields

    @override
    def sql(self, column: Column) -> str:
        return f"({self.left.sql(column)} AND {self.right.sql(column)})"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        both = self.left.matches(values), self.right.matches(values)
        return False if False in both else None if None in both else True

    @override
    def check(self, event: type[BaseModel], where: str) -> None:
        self.left.check(event, where)
        self.right.check(event, where)


@dataclass(frozen=True, repr=False)
class Disjunction(Conjunction):
    """Either condition, or both."""

    @override
    def __repr__(self) -> str:
        return f"({self.left!r}) | ({self.right!r})"

    @override
    def sql(self, column: Column) -> str:
        return f"({self.left.sql(column)} OR {self.right.sql(column)})"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        both = self.left.matches(values), self.right.matches(values)
        return True if True in both else None if None in both else False


@dataclass(frozen=True, repr=False)
class Negation(Filter):
    """The opposite of a condition; null where that is null."""

    negated: Filter

    @override
    def __repr__(self) -> str:
        return f"~({self.negated!r})"

    @property
    @override
    def fields(self) -> frozenset[str]:
        return self.negated.fields

    @override
    def sql(self, column: Column) -> str:
        return f"(NOT {self.negated.sql(column)})"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        value = self.negated.matches(values)
        return None if value is None else not value

    @override
    def check(self, event: type[BaseModel], where: str) -> None:
        self.negated.check(event, where)


def _filter(sign: str, other: object) -> Filter:
    if isinstance(other, Filter):
        return other
    raise _no_filter(sign, other)


def _no_filter(sign: str, other: object) -> DeclarationError:
    write = f"Write (field('a') == 1) {sign} (field('b') == 2): {sign} binds tighter than a comparison"
    return DeclarationError(f"… {sign} {other!r}", "is no filter", write)


def _operand(name: str, operand: object) -> Operand:
    """An operand that both sides can compare with. Raises DeclarationError."""
    where = f"field({name!r}) compared with {operand!r}"
    match operand:
        case None:
            write = f"Write field({name!r}).is_null() or field({name!r}).is_not_null()"
            raise DeclarationError(where, "a comparison with null is never true", write)
        case StrEnum():
            return operand.value
        case str() if not _is_utf8(operand):
            raise DeclarationError(where, "half a character occurs in no event", "Write a text that UTF-8 can encode")
        case bool() | str():
            return operand
        case int() if not -LONG <= operand < LONG:
            raise DeclarationError(where, "is no whole number of 64 bits", f"Write one from {-LONG} to {LONG - 1}")
        case float() if not math.isfinite(operand):
            raise DeclarationError(where, "occurs in no event", "Write a finite number")
        case int() | float():
            return operand
        case datetime(tzinfo=None):
            raise DeclarationError(where, "has no offset from UTC", "Write datetime(…, tzinfo=UTC)")
        case datetime():
            return operand.astimezone(UTC)
    write = "Write a str, an int, a float, a bool or a datetime"
    raise DeclarationError(where, f"cannot compare with a {type(operand).__name__}", write)


def _declared(event: type[BaseModel], name: str, where: str) -> Any:
    """The type of a field, without `| None`. Raises DeclarationError for an unknown field."""
    if name not in event.model_fields:
        write = f"Name one of these: {', '.join(event.model_fields)}"
        raise DeclarationError(f"{where}: field({name!r})", f"{event.__name__} has no field of this name", write)
    return without_none(event.model_fields[name].annotation)[0]


def _check_operand(declared: Any, operand: Operand, of: Filter, where: str, *, is_equality: bool) -> None:
    """Check that a field of this type can be compared with an operand. Raises DeclarationError."""
    allowed = choices(declared)
    kind = str if allowed else declared
    if kind not in EXAMPLES:
        spelled = getattr(declared, "__name__", declared)
        write = "Write is_null() or is_not_null(), or compare a field that is a text, a number, a bool or a time"
        raise DeclarationError(f"{where}: {of!r}", f"a field of type {spelled} cannot be compared", write)
    fits = isinstance(operand, (int, float) if kind in (int, float) else kind)
    if not fits or isinstance(operand, bool) is not (kind is bool):
        problem = f"the field is of type {kind.__name__}, and {operand!r} is not"
        raise DeclarationError(f"{where}: {of!r}", problem, f"Write {EXAMPLES[kind]}")
    if allowed and is_equality and operand not in allowed:
        problem = f"the field is never {operand!r}"
        raise DeclarationError(f"{where}: {of!r}", problem, f"Write one of these: {', '.join(map(repr, allowed))}")


def _compare(sign: str, value: Any, operand: Operand) -> bool:
    left, right = _ordered(value), _ordered(operand)
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if math.isnan(left):  # no operand is NaN
            return sign in ("!=", ">", ">=")
    return COMPARISONS[sign](left, right)


def _ordered(value: Any) -> Any:
    """A value that Python orders as Spark orders the original."""
    return value.encode(errors="surrogatepass") if isinstance(value, str) else value


def _literal(operand: Operand) -> str:
    match operand:
        case bool():
            return str(operand).lower()
        case str():
            return text(operand)
        case int():
            return f"{operand}L"
        case float():
            return f"double('{operand!r}')"
    return f"timestamp_micros({(operand - EPOCH) // MICROSECOND}L)"


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
