"""The reads that come most often, answered from the bytes of the request: aiohttp would cost three times as much."""

from __future__ import annotations

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from contracts.metrics import query as metrics
from services.query.cluster.routing import Role
from services.query.http import request_head as heads
from services.query.http.batch_routes import batch_reply
from services.query.http.responses import JSON
from services.query.http.retry import OF_KEY, is_nearly_caught_up
from services.query.lookup.authentication import ANONYMOUS, Principal
from services.query.lookup.decision import NO_CONDITIONS, Conditions
from services.query.lookup.problem import Problem, ProblemError

if TYPE_CHECKING:
    from services.query.dependencies import Parts
    from services.query.http.batch_routes import BatchRoutes
    from services.query.http.request_guard import RateMeter, RequestGuard
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import LookupResult, StateReader, StateReaders

SEGMENT = rb"[A-Za-z0-9._~!$&'()*+,;=:@%-]+"
LINE = re.compile(
    rb"GET /v1/states/([a-z0-9._-]+)/(" + SEGMENT + rb") HTTP/1\.1\r\n"
    rb"|POST /v1/states/([a-z0-9._-]+):batchGet HTTP/1\.1\r\n"
)
REMEMBERED = 1_000
"""How many heads are remembered: clients send the same again and again, and to read one costs as much as an answer."""


class Caller(NamedTuple):
    """What a head says, and whose it is. `meter` is None where it is that of the connection's address."""

    head: heads.RequestHead
    holder: Principal
    meter: RateMeter | None


class FastPath:
    """Answers GET by key, and batches, of what is here. All else is aiohttp's, which gives the same answer."""

    def __init__(self, parts: Parts, holdings: StateReaders, gate: RequestGuard, batches: BatchRoutes) -> None:
        self._gate = gate
        self._batches = batches
        self._now = parts.now
        self._counts = parts.counts
        self._held = {held.state.name.encode(): held for held in holdings.all()}
        self._askers: dict[bytes, Caller | None] = {}
        self._found = {held.state.name: _templates(held) for held in holdings.all()}
        self._date = 0, b""

    def forget(self) -> None:
        """The tokens have changed."""
        self._askers.clear()

    def address_meter(self, address: str) -> RateMeter:
        """What counts the keys of who asks from there without a token."""
        return self._gate.meter(ANONYMOUS, address)

    def asker(self, lines: bytes) -> Caller | None:
        """Who asks and how; None: that is aiohttp's to judge."""
        try:
            return self._askers[lines]
        except KeyError:
            pass
        if len(self._askers) >= REMEMBERED:
            self._askers.clear()
        found = self._askers[lines] = self._read(lines)
        return found

    def answer(self, line: re.Match[bytes], asker: Caller, body: bytes, meter: RateMeter) -> bytes | None:
        """The response; None: it is not for here, and takes nothing from the rate here."""
        name, raw, batch = line.groups()
        held = self._held.get(name or batch)
        if held is None:
            return None
        return self._single(held, raw, asker, meter) if raw else self._batch(held, asker, body, meter)

    def _single(self, held: StateReader, raw: bytes, asker: Caller, meter: RateMeter) -> bytes | None:
        try:
            key = (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
        except UnicodeDecodeError:
            return None
        none_match = asker.head.none_match
        if not asker.holder.reads_key(held.state.name, key) or asker.head.length:
            return None
        if not meter.take(1):
            return None
        found = held.look(key, NO_CONDITIONS if none_match is None else Conditions(none_match))
        if found.standing.role is Role.ELSEWHERE or is_nearly_caught_up(found.standing):
            meter.charge(-1)
            return None
        return self._written(held, key, found)

    def _written(self, held: StateReader, key: str, found: LookupResult) -> bytes:
        outcome, (role, lag), _ = found
        now, name, counts = self._now(), held.state.name, self._counts
        counts.add(metrics.KEYS, name)
        if isinstance(outcome, Problem):
            return self._wire(held.form.problem(key, outcome, found.standing), now)
        if outcome.unchanged:
            return self._wire(held.form.found(key, outcome, found.standing, now), now)
        counts.add(metrics.REQUESTS, "200")
        body = held.form.body(key, outcome.entry, found.standing, now)
        said = self._found[name][role] % (outcome.entry.tag.encode(), lag, len(body), self._dated(now))
        return said + body

    def _batch(self, held: StateReader, asker: Caller, body: bytes, meter: RateMeter) -> bytes | None:
        if not asker.holder.reads(held.state.name) or not meter.take(1):
            return None
        try:
            wanted = self._batches.read(body)
        except ProblemError:
            meter.charge(-1)
            return None
        more = max(0, len(wanted.keys) - 1)
        meter.charge(more)
        found = self._batches.local(held, asker.holder, wanted)
        if not all(isinstance(one, bytes) and not one.startswith(OF_KEY) for one in found):
            meter.charge(-more - 1)
            return None
        return self._wire(batch_reply(found, handed_on=asker.head.handed_on), self._now())

    def _read(self, lines: bytes) -> Caller | None:
        if (head := heads.read(lines)) is None or not self._gate.hosts.serves(head.host, head.origin):
            return None
        if (holder := self._gate.holder(head.authorization)) is None:
            return None
        return Caller(head, holder, None if holder is ANONYMOUS else self._gate.meter(holder, ""))

    def _wire(self, reply: HttpResponse, now: int) -> bytes:
        """The response as it is sent; in the order in which aiohttp sends it."""
        self._counts.add(metrics.REQUESTS, str(reply.status))
        phrase = HTTPStatus(reply.status).phrase
        lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in reply.headers)]
        if reply.status != HTTPStatus.NOT_MODIFIED:
            lines.append(f"Content-Length: {len(reply.body)}")
        return "\r\n".join([*lines, "Date: "]).encode() + self._dated(now) + b"\r\n\r\n" + reply.body

    def _dated(self, now: int) -> bytes:
        second = now // 1000
        if self._date[0] != second:
            self._date = second, formatdate(second, usegmt=True).encode()
        return self._date[1]


def _templates(held: StateReader) -> dict[Role, bytes]:
    """The head of a whole answer by role, for tag, lag, length and date."""
    found = {}
    for role in Role:
        headers = (("Content-Type", JSON), *held.form.headers("%b", role.value, "%d"))
        lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers)]
        found[role] = "\r\n".join([*lines, "Content-Length: %d", "Date: %b", "", ""]).encode()
    return found
