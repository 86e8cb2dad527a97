"""Answers the most frequent reads from the bytes of the request: through aiohttp they take three times as long."""

from __future__ import annotations

import logging
import re
from email.utils import formatdate
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from contracts.metrics import query as metrics
from services.query.http.request_head import RequestHead, parse_head
from services.query.http.requests import HttpRequest
from services.query.http.responses import HttpResponse, failed_response, problem_response
from services.query.http.retry import RetryBudget
from services.query.lookup.authentication import ANONYMOUS, Principal
from services.query.lookup.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from services.query.dependencies import Dependencies
    from services.query.http.batch_routes import BatchRoutes
    from services.query.http.key_routes import KeyRoutes
    from services.query.http.request_guard import RequestGuard
    from services.query.lookup.rate_limit import RateMeter

log = logging.getLogger(__name__)

SEGMENT = rb"[A-Za-z0-9._~!$&'()*+,;=:@%-]+"
REQUEST_LINE = re.compile(
    rb"GET /v1/states/([a-z0-9._-]+)/(" + SEGMENT + rb") HTTP/1\.1\r\n"
    rb"|POST /v1/states/([a-z0-9._-]+):batchGet HTTP/1\.1\r\n"
)
HEADS_CACHED = 1_000
"""Heads that are cached: clients repeat theirs, and parsing one costs as much as an answer."""


class CachedHead(NamedTuple):
    """A parsed head and its principal. `meter` is None where it is that of the connection's address."""

    head: RequestHead
    principal: Principal
    meter: RateMeter | None


class FastPath:
    """Answers GET of a key, and batches; aiohttp has all other requests answered."""

    def __init__(self, dependencies: Dependencies, guard: RequestGuard, keys: KeyRoutes, batches: BatchRoutes) -> None:
        self._guard = guard
        self._keys = keys
        self._batches = batches
        self._now = dependencies.now
        self._clock = dependencies.clock
        self._counts = dependencies.counts
        self._callers: dict[bytes, CachedHead | None] = {}
        self._date = 0, ""
        self.largest_body = dependencies.settings.largest_request
        """Bytes. aiohttp rejects larger bodies."""

    def forget_callers(self) -> None:
        """Drop cached heads: the tokens have changed."""
        self._callers.clear()

    def address_meter(self, address: str) -> RateMeter:
        """The rate meter of requests without a token from this address."""
        return self._guard.meter(ANONYMOUS, address)

    def caller(self, lines: bytes) -> CachedHead | None:
        """The caller of these header lines; None: aiohttp must answer."""
        try:
            return self._callers[lines]
        except KeyError:
            pass
        if len(self._callers) >= HEADS_CACHED:
            self._callers.clear()
        found = self._callers[lines] = self._parse(lines)
        return found

    def answer(
        self, line: re.Match[bytes], caller: CachedHead, body: bytes, meter: RateMeter
    ) -> bytes | Coroutine[Any, Any, bytes] | None:
        """The response as bytes, or the coroutine of one that is forwarded or retried; None: aiohttp must answer.

        Without an answer the meter is not charged.
        """
        name, segment, batch = line.groups()
        try:
            key = (unquote_to_bytes(segment) if b"%" in segment else segment).decode() if segment else ""
        except UnicodeDecodeError:
            return None
        if (segment and body) or not meter.take(1):
            return None
        request = HttpRequest(caller.principal, meter, caller.head.headers, (name or batch).decode(), key)
        request.body = body
        try:
            response = self._keys.get_now(request) if segment else self._batches.post_now(request)
        except ProblemError as error:
            response = problem_response(error.problem, error.headers)
        except Exception:
            log.exception("failed to answer")
            response = failed_response()
        return self._write(response) if isinstance(response, HttpResponse) else self._later(line, request, response)

    async def _later(
        self, line: re.Match[bytes], request: HttpRequest, response: Coroutine[Any, Any, HttpResponse]
    ) -> bytes:
        """The response once other instances have answered, or a partition has moved."""
        began = self._clock()
        request.target = line[0].split(b" ")[1].decode()
        request.retries = RetryBudget(self._clock, is_forwarded=request.is_forwarded)
        try:
            return self._write(await response)
        except Exception:
            log.exception("failed to answer")
            return self._write(failed_response())
        finally:
            self._counts.observe(metrics.REQUEST_SECONDS, self._clock() - began)

    def _parse(self, lines: bytes) -> CachedHead | None:
        if (head := parse_head(lines)) is None:
            return None
        headers = head.headers
        if not self._guard.hosts.allow(headers["Host"], headers.get("Origin")):
            return None
        if (principal := self._guard.authenticate(headers.get("Authorization"))) is None:
            return None
        return CachedHead(head, principal, None if principal is ANONYMOUS else self._guard.meter(principal, ""))

    def _write(self, response: HttpResponse) -> bytes:
        """The response as bytes, with its headers in the order of aiohttp."""
        self._counts.add(metrics.REQUESTS, str(response.status))
        status, headers, body, _ = response
        length = "" if status == HTTPStatus.NOT_MODIFIED else f"Content-Length: {len(body)}\r\n"
        head = f"{_status_line(status)}{headers}{length}Date: {self._http_date()}\r\n\r\n"
        return head.encode() + body

    def _http_date(self) -> str:
        second = self._now() // 1000
        if self._date[0] != second:
            self._date = second, formatdate(second, usegmt=True)
        return self._date[1]


@cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
