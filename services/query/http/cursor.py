"""Cursors of pages: opaque texts for clients, a JSON list for this service."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Annotated, TypeVar

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")
Start = Annotated[int, Field(ge=-(1 << 62), le=1 << 62)]
"""The start of a window, in milliseconds since 1970."""


def encode_cursor(place: Sequence[str | float | None]) -> str:
    """The cursor of a place."""
    return urlsafe_b64encode(orjson.dumps(place)).rstrip(b"=").decode()


def decode_cursor(adapter: TypeAdapter[T], cursor: str) -> T:
    """The place of a cursor. Raises ProblemError (400) for a text that is none of this request."""
    try:
        return adapter.validate_json(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, ValidationError):
        raise invalid_cursor() from None


def invalid_cursor() -> ProblemError:
    """The problem of a cursor that this service has not made for this request."""
    detail = "cursor: write that of the last page, with the same parameters, or leave it out"
    return ProblemError(Problem("bad_request", detail))
