"""Responses as status, headers and body, before aiohttp or the fast path sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson
from aiohttp import web
from multidict import CIMultiDict

from services.query.lookup.problems import CONTENT_TYPE, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

JSON = "application/json"
SECURITY = (
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
)
"""Headers of every response that does not set its own: no response is a page, or may be framed."""
Headers = tuple[tuple[str, str], ...]


class HttpResponse(NamedTuple):
    """A response. `passing` has the indices of its problems that may be gone a moment later; a single one is 0.

    `headers` are lines of HTTP, each with its end: the fast path writes them as they are.
    """

    status: int
    headers: str
    body: bytes
    passing: tuple[int, ...] = ()

    def response(self) -> web.Response:
        """The response for aiohttp."""
        return web.Response(status=self.status, headers=CIMultiDict(self.header_pairs()), body=self.body)

    def header_pairs(self) -> list[tuple[str, str]]:
        """The name and value of each header."""
        pairs = (line.partition(": ") for line in self.headers.split("\r\n")[:-1])
        return [(name, value) for name, _, value in pairs]


def header_lines(*headers: tuple[str, str]) -> str:
    """The lines of headers."""
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


NOT_CACHED = header_lines(("Cache-Control", "no-store"), *SECURITY)


def json_response(value: Mapping[str, Any], headers: Headers = ()) -> HttpResponse:
    """A JSON object that must not be cached."""
    return uncached_response(orjson.dumps(value), headers=headers)


def uncached_response(body: bytes, content_type: str = JSON, headers: Headers = ()) -> HttpResponse:
    """A body that must not be cached."""
    return HttpResponse(200, header_lines(("Content-Type", content_type), *headers) + NOT_CACHED, body)


def failed_response() -> HttpResponse:
    """The response to a request whose handler failed."""
    return problem_response(Problem("failed", "The log of the service has the reason"))


def problem_response(problem: Problem, headers: Headers = ()) -> HttpResponse:
    """A problem as application/problem+json."""
    retry = () if problem.retry_after is None else (("Retry-After", str(problem.retry_after)),)
    sent = header_lines(("Content-Type", CONTENT_TYPE), *retry, *headers) + NOT_CACHED
    return HttpResponse(problem.status, sent, orjson.dumps(problem.members()))
