"""Filters of events: one declaration, evaluated as a Spark SQL expression and in Python with the same result.

Both follow SQL's three-valued logic: a comparison with a null is null, and only true passes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.types.operands import (
    EQUALITY,
    ORDERING,
    Operand,
    check_operand,
    compare,
    declared_type,
    operand_of,
    sql_literal,
)

Column = Callable[[str], str]
"""The SQL of the column that has a field of the event."""


class Filter(ABC):
    """A condition on an event, such as `field("status") == "departed"`. Combine filters with `&`, `|` and `~`.

    It is the argument `where` of a state, or of a reducer. `fields` has the fields that it reads, `sql` gives the Spark
    SQL, and `matches` evaluates it in Python.
    """

    written_as = "a comparison of a field: field('status') == 'departed'"

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

    @override
    def __repr__(self) -> str:
        return f"field({self.name!r})"

    def __eq__(self, operand: Operand) -> Filter:  # type: ignore[override]  # a comparison declares a filter
        return Comparison(self.name, "==", operand_of(self.name, operand))

    def __ne__(self, operand: Operand) -> Filter:  # type: ignore[override]
        return Comparison(self.name, "!=", operand_of(self.name, operand))

    def __lt__(self, operand: Operand) -> Filter:
        return Comparison(self.name, "<", operand_of(self.name, operand))

    def __le__(self, operand: Operand) -> Filter:
        return Comparison(self.name, "<=", operand_of(self.name, operand))

    def __gt__(self, operand: Operand) -> Filter:
        return Comparison(self.name, ">", operand_of(self.name, operand))

    def __ge__(self, operand: Operand) -> Filter:
        return Comparison(self.name, ">=", operand_of(self.name, operand))

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
        return IsIn(self.name, tuple(operand_of(self.name, operand) for operand in operands))

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
        return f"({column(self.name)} {'=' if self.sign == '==' else self.sign} {sql_literal(self.operand)})"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        value = values.get(self.name)
        return None if value is None else compare(self.sign, value, self.operand)

    @override
    def check(self, event: type[BaseModel], where: str) -> None:
        declared = declared_type(event, self.name, where)
        check_operand(declared, self.operand, self, where, is_equality=self.sign in EQUALITY)
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
        x, literals = column(self.name), [sql_literal(operand) for operand in self.operands]
        if any(isinstance(operand, float) for operand in self.operands):  # IN takes one common type for all operands
            return f"({' OR '.join(f'{x} = {literal}' for literal in literals)})"
        return f"({x} IN ({', '.join(literals)}))"

    @override
    def matches(self, values: Mapping[str, Any]) -> bool | None:
        value = values.get(self.name)
        return None if value is None else any(compare("==", value, operand) for operand in self.operands)

    @override
    def check(self, event: type[BaseModel], where: str) -> None:
        declared = declared_type(event, self.name, where)
        for operand in self.operands:
            check_operand(declared, operand, self, where, is_equality=True)


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
        declared_type(event, self.name, where)


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
