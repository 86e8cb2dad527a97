"""GET /v1/states/{name}/{key}/watch: one key as server-sent events."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, web
from pydantic import AwareDatetime, TypeAdapter, ValidationError

from contracts.api.reads import SPAN
from contracts.metrics import query as metrics
from services.query.http.client_writer import ClientWriter
from services.query.http.frames import chunk, control_event, event_of
from services.query.http.request_context import principal
from services.query.http.validation import key_of_request, milliseconds_at, seconds_of
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.version_reference import parse_tag
from services.query.push.filter import SubscriptionFilter
from services.query.push.stream_items import ProgressMark, StreamRefused, StreamReset, SubscriptionDenied

if TYPE_CHECKING:
    from services.query.dependencies import Dependencies
    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.filter import WindowChoice
    from services.query.push.push_service import PushService
    from services.query.push.stream import Stream
    from services.query.push.stream_items import StreamItem

HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
TIME: TypeAdapter[AwareDatetime] = TypeAdapter(AwareDatetime)
RETRY = b"retry: 1000\n\n"
"""Milliseconds after which a browser reconnects when the stream has ended."""


class EventStreams:
    """Event streams of single keys. A stream ends when its client is gone or reads nothing, or the service stops."""

    def __init__(self, dependencies: Dependencies, push: PushService) -> None:
        self._counts = dependencies.counts
        self._clock = dependencies.clock
        self._push = push

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """The value of the key, and its changes. Raises ProblemError."""
        wanted = SubscriptionFilter(
            request.match_info["name"],
            key_of_request(request),
            window=_parse_window(request),
            silent_for=_parse_silent_for(request),
        )
        current, after = _parse_current(request), _parse_last_event(request)
        response, has_chunks = web.StreamResponse(headers=HEADERS), request.version >= HttpVersion11
        with self._push.stream(principal(request)) as stream:
            self._push.subscribe(stream, "", wanted, current=current, after=after)
            with suppress(ConnectionError):
                writer = ClientWriter(request, await response.prepare(request), self._push.limits.stalled_s)
                await response.write(RETRY)
                await stream.run(writer, partial(self._encode, stream, has_chunks=has_chunks))
        return response

    def _encode(self, stream: Stream, item: StreamItem, *, has_chunks: bool) -> bytes:
        events = self._events(stream, item)
        return chunk(events) if has_chunks and events else events

    def _events(self, stream: Stream, item: StreamItem) -> bytes:
        if isinstance(item, list):
            self._counts.add(metrics.DELIVERED, "sse", by=len(item))
            for one in item:
                self._counts.observe(metrics.PUSH_SECONDS, self._clock() - one.at)
            return b"".join(event_of(one.answer) for one in item)
        if isinstance(item, ProgressMark):
            return control_event("mark", self._push.progress(stream, item))
        if isinstance(item, SubscriptionDenied | StreamRefused):
            stream.end()
            return control_event("problem", item.problem.members())
        if isinstance(item, StreamReset):
            self._counts.add(metrics.RESETS, "sse")
            return control_event("reset", {"conflated": stream.lag().conflated})
        return b""


def _parse_window(request: web.Request) -> WindowChoice:
    value = request.query.get("window", "newest")
    if value in ("newest", "all"):
        return "all" if value == "all" else "newest"
    try:
        return milliseconds_at(TIME.validate_python(value))
    except ValidationError:
        detail = f"window={value[:100]}: write newest, all, or a time such as 2026-05-01T08:00:00Z, with its offset"
        raise ProblemError(Problem("bad_request", detail)) from None


def _parse_silent_for(request: web.Request) -> int | None:
    value = request.query.get("silent_for")
    if value is not None and not re.fullmatch(SPAN, value):
        raise ProblemError(Problem("bad_request", f"silent_for={value[:100]}: write 30s, 5m, 2h or 1d"))
    return None if value is None else seconds_of(value)


def _parse_current(request: web.Request) -> bool:
    value = request.query.get("current", "true")
    if value not in ("true", "false"):
        raise ProblemError(Problem("bad_request", f"current={value}: write true or false"))
    return value == "true"


def _parse_last_event(request: web.Request) -> DeliveredOrder | None:
    """The version that the client has, by the id of the last event that it received."""
    last = request.headers.get("Last-Event-ID")
    if not last:
        return None
    after = parse_tag(last)
    if after is None:
        raise ProblemError(Problem("bad_request", "Last-Event-ID is none of this service's: leave it out"))
    return after
