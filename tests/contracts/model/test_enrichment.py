"""The function of an enrichment is checked where it is declared."""

from typing import Any

import pytest
from pydantic import BaseModel

from contracts import Api, DeclarationError, enrichment


class Owner(BaseModel):
    name: str


def plain(api: Api, name: str) -> Owner:
    raise NotImplementedError


async def bare(api: Api, name) -> Owner:  # type: ignore[no-untyped-def]  # noqa: ANN001  # that is the mistake
    raise NotImplementedError


async def silent(api: Api, name: str) -> None:
    raise NotImplementedError


async def perhaps(api: Api, name: str) -> Owner | None:
    raise NotImplementedError


async def apiless(name: str, speed: float | None) -> Owner:
    raise NotImplementedError


async def empty() -> Owner:
    raise NotImplementedError


async def untyped(name) -> Owner:  # type: ignore[no-untyped-def]  # noqa: ANN001  # that is the mistake
    raise NotImplementedError


async def default(api: Api, speed: float = 2.0) -> Owner:
    raise NotImplementedError


async def optional(api: Api, speed: float | None = 2.0) -> Owner:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (plain, "Write `async def plain"),
        (bare, "name has no type"),
        (silent, "Annotate its return"),
        (perhaps, "Write `-> Owner`, and raise AbsentError where there is none"),
        (apiless, r"name, is not the Api. Write `async def apiless\(api: Api, name: str, speed: float \| None\)`"),
        (empty, r"Write `async def empty\(api: Api\)`"),
        (untyped, "its first parameter, name, is not the Api"),
        (default, r"default\(speed\): the default 2.0 would never be used. Write `speed: float \| None`"),
        (optional, r"optional\(speed\): the default 2.0 would never be used"),
    ],
)
def test_a_function_that_no_worker_can_run_is_refused(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        enrichment(api="a")(function)


async def unnamed(_: Any, name: str) -> Owner:
    raise NotImplementedError


async def short(api, name: str | None = None) -> Owner:  # type: ignore[no-untyped-def]  # noqa: ANN001  # it is clear
    raise NotImplementedError


@pytest.mark.parametrize("function", [unnamed, short])
def test_a_function_whose_first_parameter_may_be_the_api_is_accepted(function: Any) -> None:
    assert [need.name for need in enrichment(api="a")(function).needs] == ["name"]
