"""GET /v1/states/{name}/{key}/watch: one key, as server-sent events."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from contracts.metrics import query as metrics
from services.query.http.client_writer import ClientWriter
from services.query.http.frames import control_event, event_of
from services.query.http.parameters import key_of_request
from services.query.http.request_context import principal
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.version_reference import parse_tag
from services.query.push.client_stream import ProgressMark, StreamRefused, StreamReset, SubscriptionDenied
from services.query.push.filter import Filter

if TYPE_CHECKING:
    from services.query.dependencies import Parts
    from services.query.push.client_stream import ClientStream, StreamItem
    from services.query.push.push_service import PushService
    from services.query.store.entry import Order

HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
RETRY = b"retry: 1000\n\n"
"""After how many milliseconds a browser connects again, when the stream has ended."""


class EventStreams:
    """The streams of single keys. One ends when its client goes, or takes nothing for long, or the service ends."""

    def __init__(self, parts: Parts, watching: PushService) -> None:
        self._counts = parts.counts
        self._clock = parts.clock
        self._watching = watching

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """The key's value and what becomes of it. Raises ProblemError."""
        interest = Filter(request.match_info["name"], key_of_request(request))
        current, after = _current(request), _after(request)
        response = web.StreamResponse(headers=HEADERS)
        with self._watching.stream(principal(request)) as stream:
            self._watching.subscribe(stream, "", interest, current=current, after=after)
            with suppress(ConnectionError):
                outlet = ClientWriter(request, await response.prepare(request), self._watching.limits.stalled_s)
                await response.write(RETRY)
                await stream.flow(outlet, partial(self._written, stream))
        return response

    def _written(self, stream: ClientStream, item: StreamItem) -> bytes:
        if isinstance(item, list):
            self._counts.add(metrics.DELIVERED, "sse", by=len(item))
            for letter in item:
                self._counts.observe(metrics.PUSH_SECONDS, self._clock() - letter.notice.at)
            return b"".join(event_of(letter.notice) for letter in item)
        if isinstance(item, ProgressMark):
            return control_event("mark", self._watching.progress(stream, item))
        if isinstance(item, SubscriptionDenied | StreamRefused):
            stream.end()
            return control_event("problem", item.problem.members())
        if isinstance(item, StreamReset):
            self._counts.add(metrics.RESETS, "sse")
            return control_event("reset", {"conflated": stream.mailbox.conflated})
        return b""


def _current(request: web.Request) -> bool:
    asked = request.query.get("current", "true")
    if asked not in ("true", "false"):
        raise ProblemError(Problem("bad_request", f"current={asked}: write true or false"))
    return asked == "true"


def _after(request: web.Request) -> Order | None:
    """What the client has, by the id of the last event that it got."""
    last = request.headers.get("Last-Event-ID")
    if not last:
        return None
    after = parse_tag(last)
    if after is None:
        raise ProblemError(Problem("bad_request", "Last-Event-ID is none of this service's: leave it out"))
    return after
