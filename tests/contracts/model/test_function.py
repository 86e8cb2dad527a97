"""Functions of an application that could not be called are refused where they are declared."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from contracts import AlertRule, Alerts, DeclarationError, Derived, Raw, Table, Webhook


class Place(BaseModel):
    street: str


RULES = Table("rules", AlertRule)
PLACES = Table("places", Place)


async def one(_: Any) -> Any:
    raise NotImplementedError


async def two(_: Any, __: Any) -> Any:
    raise NotImplementedError


async def pairs(_: Any) -> AsyncIterator[Any]:
    yield "street", Place(street="Oak")


class Later:
    async def __call__(self, _: Any) -> Any:
        raise NotImplementedError


DECLARATIONS: dict[str, Callable[[Any], object]] = {
    "opens": lambda function: Alerts("speeding", RULES, opens=function),
    "closes": lambda function: Alerts("speeding", RULES, opens=lambda *_: True, closes=function),
    "Derived": lambda function: Derived("streets", Place, function),
    "with tables=": lambda function: Derived("streets", Place, function, tables=(PLACES,)),
    "decode": lambda function: Raw("packed", function),
    "body": lambda function: Webhook("pager", body=function),
}
BY_ARGUMENTS = {1: ("Derived", "decode", "body"), 2: ("opens", "closes", "with tables=")}


@pytest.mark.parametrize(
    ("name", "function"),
    [
        *((name, function) for name in BY_ARGUMENTS[1] for function in (one, pairs, Later(), partial(one))),
        *((name, function) for name in BY_ARGUMENTS[2] for function in (two, partial(two))),
    ],
)
def test_an_async_function_is_refused(name: str, function: Any) -> None:
    with pytest.raises(DeclarationError, match=r"is async\. Write a plain function") as error:
        DECLARATIONS[name](function)
    assert name in error.value.where


@pytest.mark.parametrize(
    ("name", "function", "write"),
    [
        *((name, lambda _, __: (), r"missing a required argument: '__'. Write a") for name in BY_ARGUMENTS[1]),
        *((name, lambda: (), "too many positional arguments. Write a") for name in DECLARATIONS),
        *((name, lambda _: (), "Write a function of snapshot and ") for name in BY_ARGUMENTS[2]),
    ],
)
def test_a_function_of_other_arguments_is_refused(name: str, function: Any, write: str) -> None:
    with pytest.raises(DeclarationError, match=write) as error:
        DECLARATIONS[name](function)
    assert name in error.value.where


class Doubled:
    def __call__(self, _: Any, factor: int = 2) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("function", [dict, print, max, Doubled(), partial(Doubled(), factor=3), lambda *_: ()])
def test_a_function_that_takes_the_arguments_or_has_no_signature_is_accepted(function: Any) -> None:
    for name in BY_ARGUMENTS[1]:
        DECLARATIONS[name](function)
