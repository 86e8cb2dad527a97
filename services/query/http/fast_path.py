"""Answers the most frequent reads from the bytes of the request: through aiohttp they take three times as long."""

from __future__ import annotations

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from contracts.metrics import query as metrics
from services.query.cluster import Role
from services.query.http.batch_routes import batch_response
from services.query.http.key_responses import KeyResponses
from services.query.http.request_head import RequestHead, parse_head
from services.query.http.responses import JSON, problem_response
from services.query.http.retry import catches_up_soon
from services.query.lookup.authentication import ANONYMOUS, Principal
from services.query.lookup.batch import Unanswered
from services.query.lookup.decision import NO_CONDITIONS, Conditions
from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from services.query.dependencies import Dependencies
    from services.query.http.batch_routes import BatchRoutes
    from services.query.http.request_guard import RequestGuard
    from services.query.http.responses import HttpResponse
    from services.query.lookup.rate_limit import RateMeter
    from services.query.lookup.state_reader import LookupResult, StateReader, StateReaders

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
    """Answers GET of a key, and batches, that this instance owns. aiohttp gives the same answers, and all others."""

    def __init__(
        self, dependencies: Dependencies, readers: StateReaders, guard: RequestGuard, batches: BatchRoutes
    ) -> None:
        self._guard = guard
        self._batches = batches
        self._now = dependencies.now
        self._counts = dependencies.counts
        self._readers = {one.state.name.encode(): one for one in readers.all()}
        self._callers: dict[bytes, CachedHead | None] = {}
        self._responses = {one.state.name: KeyResponses(one, dependencies.settings.instance) for one in readers.all()}
        self._found = {name: _templates(responses) for name, responses in self._responses.items()}
        self._date = 0, b""

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

    def answer(self, line: re.Match[bytes], caller: CachedHead, body: bytes, meter: RateMeter) -> bytes | None:
        """The response as bytes; None: aiohttp must answer, and the meter is not charged."""
        name, segment, batch = line.groups()
        reader = self._readers.get(name or batch)
        if reader is None:
            return None
        if segment:
            return self._answer_key(reader, segment, caller, meter)
        return self._answer_batch(reader, caller, body, meter)

    def _answer_key(self, reader: StateReader, segment: bytes, caller: CachedHead, meter: RateMeter) -> bytes | None:
        try:
            key = (unquote_to_bytes(segment) if b"%" in segment else segment).decode()
        except UnicodeDecodeError:
            return None
        none_match = caller.head.none_match
        if not caller.principal.reads_key(reader.state.name, key) or caller.head.length:
            return None
        if not meter.take(1):
            return None
        found = reader.read(key, NO_CONDITIONS if none_match is None else Conditions(none_match))
        if found.partition_status.role is Role.ELSEWHERE or catches_up_soon(found.partition_status):
            meter.charge(-1)
            return None
        return self._write_key(reader, key, found)

    def _write_key(self, reader: StateReader, key: str, found: LookupResult) -> bytes:
        outcome, (role, lag), _ = found
        now, name, counts = self._now(), reader.state.name, self._counts
        counts.add(metrics.KEYS, name)
        if isinstance(outcome, Problem):
            return self._write(problem_response(reader.encoder.describe(key, outcome, found.partition_status)), now)
        if outcome.unchanged:
            return self._write(self._responses[name].found(key, outcome, found.partition_status, now), now)
        counts.add(metrics.REQUESTS, "200")
        body = reader.encoder.encode(key, outcome.entry, found.partition_status, now)
        return self._found[name][role] % (outcome.etag.encode(), lag, len(body), self._http_date(now)) + body

    def _answer_batch(self, reader: StateReader, caller: CachedHead, body: bytes, meter: RateMeter) -> bytes | None:
        if not caller.principal.reads(reader.state.name) or not meter.take(1):
            return None
        try:
            batch = self._batches.parse(body)
            found = self._batches.read(reader, caller.principal, batch)
        except ProblemError:
            meter.charge(-1)
            return None
        more = max(0, len(batch.keys) - 1)
        meter.charge(more)
        if any(isinstance(one, Unanswered) for one in found):
            meter.charge(-more - 1)
            return None
        return self._write(batch_response(found, forwarded=caller.head.forwarded), self._now())

    def _parse(self, lines: bytes) -> CachedHead | None:
        if (head := parse_head(lines)) is None or not self._guard.hosts.allow(head.host, head.origin):
            return None
        if (principal := self._guard.authenticate(head.authorization)) is None:
            return None
        return CachedHead(head, principal, None if principal is ANONYMOUS else self._guard.meter(principal, ""))

    def _write(self, response: HttpResponse, now: int) -> bytes:
        """The response as bytes, with its headers in the order of aiohttp."""
        self._counts.add(metrics.REQUESTS, str(response.status))
        phrase = HTTPStatus(response.status).phrase
        lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{name}: {value}" for name, value in response.headers)]
        if response.status != HTTPStatus.NOT_MODIFIED:
            lines.append(f"Content-Length: {len(response.body)}")
        head = "\r\n".join([*lines, "Date: "]).encode()
        return head + self._http_date(now) + b"\r\n\r\n" + response.body

    def _http_date(self, now: int) -> bytes:
        second = now // 1000
        if self._date[0] != second:
            self._date = second, formatdate(second, usegmt=True).encode()
        return self._date[1]


def _templates(responses: KeyResponses) -> dict[Role, bytes]:
    """The head of a 200 by role, to be filled with tag, lag, length and date."""
    found = {}
    for role in Role:
        headers = (("Content-Type", JSON), *responses.headers("%b", role.value, "%d"))
        lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers)]
        found[role] = "\r\n".join([*lines, "Content-Length: %d", "Date: %b", "", ""]).encode()
    return found
