"""Filters: what they read, how they look, and which declarations are refused with what to write."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from contracts import DeclarationError, Filter, field
from contracts.types.filters import FieldReference

NAN = float("nan")
WIDE = 1 << 53
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Phase(StrEnum):
    """The phase of a flight."""

    TAXI = "taxi"
    CRUISE = "cruise"


class Position(BaseModel):
    """A model inside the event."""

    lat: float


class Flight(BaseModel):
    """An event with a field of each kind."""

    status: Literal["departed", "landed"]
    phase: Phase | None = None
    name: str | None = None
    load: int | None = None
    speed: float | None = None
    on: bool | None = None
    due: datetime | None = None
    at: Position | None = None
    stops: list[str] | None = None


departed = field("status") == "departed"
fast = field("speed") > 10


@pytest.mark.parametrize(
    ("declared", "values", "result"),
    [
        (departed, {"status": "departed"}, True),
        (departed, {"status": "landed"}, False),
        (departed, {"status": None}, None),
        (departed, {}, None),
        (field("phase") == Phase.TAXI, {"phase": Phase.TAXI}, True),
        (field("phase") == Phase.TAXI, {"phase": "taxi"}, True),
        (~departed, {}, None),
        (~departed, {"status": "landed"}, True),
        (departed & fast, {"status": "landed"}, False),
        (departed & fast, {"status": "departed"}, None),
        (departed | fast, {"status": "departed"}, True),
        (departed | fast, {"status": "landed"}, None),
        (fast, {"speed": NAN}, True),
        (field("speed") <= 1, {"speed": NAN}, False),
        (field("speed") != 1.5, {"speed": NAN}, True),
        (field("speed") == 0, {"speed": -0.0}, True),
        (field("speed").is_null(), {"speed": NAN}, False),
        (field("speed").is_null(), {}, True),
        (field("speed").is_not_null(), {"speed": 0.0}, True),
        (field("load") == float(WIDE), {"load": WIDE + 1}, True),
        (field("load") == WIDE, {"load": WIDE + 1}, False),
        (field("load").is_in(1, 2), {"load": 2}, True),
        (field("load").is_in(1, 2), {"load": 3}, False),
        (field("load").is_in(1, 2), {"load": None}, None),
        (field("name") < "𝄞", {"name": "\uffff"}, True),
        (field("due") >= NOW, {"due": NOW}, True),
        (field("on") == False, {"on": False}, True),  # noqa: E712  # a filter is no truth value
        (10 < field("speed"), {"speed": 11.0}, True),  # noqa: SIM300
    ],
)
def test_a_filter_has_the_three_values_of_sql(declared: Filter, values: Any, result: bool | None) -> None:  # noqa: FBT001
    assert declared.matches(values) is result


def test_a_filter_knows_its_fields_and_reads_as_it_is_declared() -> None:
    both = (departed | ~fast) & field("load").is_in(1, 2) & field("due").is_null()
    assert both.fields == {"status", "speed", "load", "due"}
    spelled = "(((field('status') == 'departed') | (~(field('speed') > 10))) & (field('load').is_in(1, 2)))"
    assert repr(both) == f"{spelled} & (field('due').is_null())"
    assert eval(repr(both), {"field": field}) == both  # noqa: S307  # the text is the test's own


def test_equal_filters_are_equal_and_have_one_hash() -> None:
    assert len({departed, field("status") == "departed", field("status") != "departed"}) == 2
    assert (departed & fast) != (departed | fast)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: field("name") == None, r"Write field\('name'\).is_null\(\)"),  # noqa: E711
        (lambda: field("speed") < NAN, "Write a finite number"),
        (lambda: field("speed") < float("inf"), "Write a finite number"),
        (lambda: field("load") == 1 << 63, "Write one from -9223372036854775808 to 9223372036854775807"),
        (lambda: field("due") < datetime(2026, 1, 1), r"Write datetime\(…, tzinfo=UTC\)"),  # noqa: DTZ001
        (lambda: field("name") == "\ud800", "Write a text that UTF-8 can encode"),
        (lambda: field("name") == field("status"), "Write a str, an int, a float, a bool or a datetime"),  # type: ignore[operator]
        (lambda: field("name").is_in(), r"Write is_in\('a', 'b'\)"),
        (lambda: departed & True, r"Write \(field\('a'\) == 1\) & "),  # type: ignore[operator]
        (lambda: departed | "x", r"Write \(field\('a'\) == 1\) \| "),  # type: ignore[operator]
        (lambda: departed and fast, "Write &, | and ~ instead of and, or, not"),
        (lambda: not departed, "Write &, | and ~ instead of and, or, not"),
        (lambda: 1 < field("speed") < 5, "Write &, | and ~ instead of and, or, not and chained comparisons"),
    ],
)
def test_an_operand_that_fits_no_event_is_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message.replace("&, |", r"&, \|")):
        declare()


@pytest.mark.parametrize(
    "declared",
    [
        departed,
        field("status") < "e",
        field("phase").is_in(Phase.TAXI, "cruise"),
        field("load") < 1.5,
        field("speed") == 2,
        field("on") != True,  # noqa: E712
        field("due") < NOW,
        field("at").is_null() & field("stops").is_not_null(),
    ],
)
def test_a_filter_that_fits_the_event_is_accepted(declared: Filter) -> None:
    declared.check(Flight, "Taxi(where=…)")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (field("state") == 1, "Flight has no field of this name. Name one of these: status, phase, name"),
        (~(field("state").is_null()), "Name one of these: status"),
        (fast & (field("nme") == "x"), r"Taxi: field\('nme'\): Flight has no field"),
        (field("status") == "gone", "the field is never 'gone'. Write one of these: 'departed', 'landed'"),
        (field("phase").is_in("taxi", "fly"), "Write one of these: 'taxi', 'cruise'"),
        (field("status") == 1, "the field is of type str, and 1 is not. Write a text"),
        (field("name") == True, "and True is not. Write a text"),  # noqa: E712
        (field("load") == "1", "the field is of type int, and '1' is not. Write a number"),
        (field("load") == True, "and True is not. Write a number"),  # noqa: E712
        (field("on") == 1, "and 1 is not. Write True or False"),
        (field("on") < True, "a bool has no order. Write == True or == False"),
        (field("due") > "2026-01-01", "Write a datetime"),
        (field("at") == "x", "a field of type Position cannot be compared. Write is_null"),
        (field("stops") < "x", r"a field of type list cannot be compared"),
    ],
)
def test_a_filter_that_does_not_fit_the_event_is_refused(declared: Filter, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declared.check(Flight, "Taxi")


def test_a_reference_is_no_key_of_a_dict() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        {field("x"): 1}
    assert isinstance(field("x"), FieldReference)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: field("a") == "x" & field("b"),
        lambda: field("a") == "x" & field("b") == "y",  # type: ignore[comparison-overlap]  # that is the mistake
        lambda: field("b") & (field("a") == "x"),
        lambda: (field("a") == "x") | field("b"),
        lambda: ~field("b"),
    ],
)
def test_a_field_in_place_of_a_comparison_is_refused_with_parentheses(declare: Callable[[], object]) -> None:
    with pytest.raises(DeclarationError, match=r"Write (~\(field|.* binds tighter)"):
        declare()
