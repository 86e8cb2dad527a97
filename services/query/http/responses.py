"""A response before it is sent, whichever way that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson
from aiohttp import web
from multidict import CIMultiDict

from services.query.lookup.problem import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from services.query.lookup.problem import Problem

JSON = "application/json"
SECURITY = (
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
)
"""What every response says, unless a piece says otherwise: nothing of it is a page, and nobody frames it."""
Headers = tuple[tuple[str, str], ...]


class HttpResponse(NamedTuple):
    """Status, headers in their order, and body."""

    status: int
    headers: Headers
    body: bytes

    def response(self) -> web.Response:
        """As aiohttp sends it."""
        return web.Response(status=self.status, headers=CIMultiDict(self.headers), body=self.body)


def json_response(value: Mapping[str, Any], headers: Headers = ()) -> HttpResponse:
    """An answer that nobody keeps."""
    return uncached_response(orjson.dumps(value), headers=headers)


def uncached_response(body: bytes, kind: str = JSON, headers: Headers = ()) -> HttpResponse:
    """The same, of what is text already."""
    return HttpResponse(200, (("Content-Type", kind), *headers, ("Cache-Control", "no-store"), *SECURITY), body)


def problem_response(problem: Problem, headers: Headers = ()) -> HttpResponse:
    """A problem, as its client gets it."""
    again = () if problem.retry_after is None else (("Retry-After", str(problem.retry_after)),)
    said = (("Content-Type", CONTENT_TYPE), *again, *headers, ("Cache-Control", "no-store"), *SECURITY)
    return HttpResponse(problem.status, said, orjson.dumps(problem.members()))
