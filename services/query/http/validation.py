"""Validates the parameters and bodies of requests, and decodes their paths."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, overload
from urllib.parse import unquote_to_bytes

from pydantic import ValidationError

from contracts.api.endpoint import Parameters
from contracts.errors import problem_of
from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

MISTAKES_MAX = 3
"""How many mistakes a problem lists; the others are counted."""
NAME_MAX = 100
"""Characters of an unknown name that a problem repeats."""
KEY_SEGMENT = 4
"""The segment of /v1/states/{name}/{key} that is the key."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
Model = TypeVar("Model", bound=Parameters)


def validate(model: type[Model], members: object) -> Model:
    """The model with these members. Raises ProblemError (400), whose text is short whatever the members are."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    known = ", ".join(names)
    unknown = [name for name in members if name not in names] if isinstance(members, dict) else []
    if unknown:  # before validation, which would make one error for each
        mistakes = [f"{name[:NAME_MAX]}: unknown parameter" for name in unknown[:MISTAKES_MAX]]
        raise ProblemError(Problem("bad_request", f"{_list(mistakes, unknown)}. Known: {known}"))
    try:
        return model.model_validate(members)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
        mistakes = [problem_of(one, "it") for one in errors[:MISTAKES_MAX]]
        raise ProblemError(Problem("bad_request", f"{_list(mistakes, errors)}. Known: {known}")) from None


def _list(mistakes: Sequence[str], of: Sequence[object]) -> str:
    """The first mistakes, and the number of the others."""
    return "; ".join(mistakes) + (f"; and {len(of) - len(mistakes)} more" if len(of) > len(mistakes) else "")


@overload
def milliseconds_at(time: datetime) -> int: ...


@overload
def milliseconds_at(time: datetime | None) -> int | None: ...


def milliseconds_at(time: datetime | None) -> int | None:
    """A time in milliseconds since 1970."""
    return None if time is None else (time - _EPOCH) // timedelta(milliseconds=1)


def seconds_of(span: str) -> int:
    """The seconds of a text that matches SPAN; without a unit, they are meant."""
    unit = SECONDS.get(span[-1])
    return int(span) if unit is None else int(span[:-1]) * unit


def unquote_segment(raw: str) -> str:
    """A segment of a path without its percent-encoding. Raises ProblemError (400)."""
    try:
        return unquote_to_bytes(raw).decode() if "%" in raw else raw
    except UnicodeDecodeError:
        raise ProblemError(Problem("bad_request", "The path is not percent-encoded UTF-8")) from None


def key_of_request(request: web.Request) -> str:
    """The key in the path. aiohttp's own decoding of a path leaves some encodings as they are."""
    return unquote_segment(request.rel_url.raw_path.split("/")[KEY_SEGMENT])
