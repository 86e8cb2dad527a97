"""GET /v1/watch: many subscriptions on one WebSocket."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, WSMsgType, web
from pydantic import ValidationError

from contracts.api.watch import CLIENT_COMMAND, PEER_COMMAND, Relay, Resume, Subscribe, Unsubscribe
from contracts.errors import problem_of
from contracts.metrics import query as metrics
from services.query.http.client_writer import ClientWriter
from services.query.http.frames import control_message, delivery_message, websocket_frame
from services.query.http.request_context import METER, is_of_instance, principal
from services.query.http.validation import milliseconds_at, seconds_of
from services.query.layout import require_same_layout
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.version_reference import parse_tag
from services.query.push.filter import SubscriptionFilter
from services.query.push.stream_items import (
    CommandResponse,
    InitialStateSent,
    PartitionsStarted,
    ProgressMark,
    StreamRefused,
    StreamReset,
    SubscriptionDenied,
)

if TYPE_CHECKING:
    from services.query.dependencies import Dependencies
    from services.query.lookup.rate_limit import RateMeter
    from services.query.lookup.version_reference import DeliveredOrder
    from services.query.push.push_service import PushService
    from services.query.push.stream import Stream, StreamWriter
    from services.query.push.stream_items import ControlItem, StreamItem

PROTOCOL = "stateloop.v1"
"""The subprotocol. A browser, which cannot send headers, offers its token as another one: see request_context."""
PING_S = 20.0
"""How often a client is pinged; it has half of that to answer.

Another instance is not: it reads nothing, and answers nothing, while its own client reads nothing.
"""
RESPONSES_MAX = 100
"""How many responses may be unsent; beyond it, no further command is read."""


class WatchConnection:
    """One WebSocket: executes the commands of its client, and encodes the items of its stream."""

    def __init__(
        self, dependencies: Dependencies, push: PushService, stream: Stream, meter: RateMeter, *, relays: bool
    ) -> None:
        self._meter = meter
        self._counts = dependencies.counts
        self._clock = dependencies.clock
        self._push = push
        self._relays = relays
        self._stream = stream

    async def serve(self, socket: web.WebSocketResponse, writer: StreamWriter) -> None:
        """Send and receive until either ends: the client closes, its token is revoked, or the service stops."""
        sending = asyncio.create_task(self._stream.run(writer, self._encode))
        receiving = asyncio.create_task(self._receive(socket))
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stream.end()
            receiving.cancel()
            ended = await asyncio.gather(sending, receiving, return_exceptions=True)
            await socket.close(code=_close_code(self._stream.refused))
        for one in ended:
            if isinstance(one, Exception):
                raise one

    async def _receive(self, socket: web.WebSocketResponse) -> None:
        """Execute commands until the client closes."""
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"send text")
                return
            self._stream.send_first(CommandResponse(self._respond(message.data)))
            await self._stream.wait_for_responses(RESPONSES_MAX)

    def _respond(self, text: str) -> bytes:
        """The response to a command. A wrong command gets an error, and does not affect other subscriptions."""
        name = None
        try:
            command = (PEER_COMMAND if self._relays else CLIENT_COMMAND).validate_json(text)
            name = command.id
            return self._execute(command)
        except ValidationError as error:
            return _error(name, Problem("bad_request", "; ".join(map(problem_of, error.errors()))))
        except ProblemError as error:
            return _error(name, error.problem)

    def _execute(self, command: Subscribe | Relay | Resume | Unsubscribe) -> bytes:
        if isinstance(command, Unsubscribe):
            self._push.unsubscribe(self._stream, command.id)
            return control_message("unsubscribed", {"id": command.id})
        if isinstance(command, Resume):
            self._push.resume(self._stream, command.id, command.partitions)
            return control_message("resumed", {"id": command.id})
        if isinstance(command, Relay):
            name, current = command.id, command.current
            after = _after(command)
            self._push.relay(self._stream, name, _filter(command), command.partitions, current=current, after=after)
            return control_message("subscribed", {"id": name})
        self._subscribe(command)
        return control_message("subscribed", {"id": command.id})

    def _subscribe(self, command: Subscribe) -> None:
        if not self._meter.take(1):
            self._counts.add(metrics.REFUSED, "rate")
            retry_after_s = self._meter.retry_after_s()
            detail = f"Subscribe again in {retry_after_s} s"
            raise ProblemError(Problem("too_many", detail, retry_after=retry_after_s))
        limit = self._push.limits.subscriptions
        if command.id not in self._stream.subscriptions and len(self._stream.subscriptions) >= limit:
            detail = f"A connection may have {limit} subscriptions: open another one"
            raise ProblemError(Problem("too_many", detail))
        after = _after(command)
        self._push.subscribe(self._stream, command.id, _filter(command), current=command.current, after=after)

    def _encode(self, item: StreamItem) -> bytes:
        if isinstance(item, list):
            self._counts.add(metrics.DELIVERED, "websocket", by=len(item))
            for one in item:
                self._counts.observe(metrics.PUSH_SECONDS, self._clock() - one.at)
            return b"".join(websocket_frame(delivery_message(one)) for one in item)
        return websocket_frame(self._encode_control(item))

    def _encode_control(self, item: ControlItem) -> bytes:
        if isinstance(item, ProgressMark):
            return control_message("mark", self._push.progress(self._stream, item))
        if isinstance(item, InitialStateSent):
            facts = {"id": item.subscription.name, "partitions": sorted(item.partitions)}
            return control_message("current", facts)
        if isinstance(item, PartitionsStarted):
            offsets = {str(one): offset for one, offset in item.offsets.items()}
            return control_message("begun", {"id": item.subscription.name, "reached": offsets})
        if isinstance(item, SubscriptionDenied | StreamRefused):
            return _error(item.name if isinstance(item, SubscriptionDenied) else None, item.problem)
        if isinstance(item, StreamReset):
            self._counts.add(metrics.RESETS, "websocket")
            conflated = self._stream.lag().conflated
            return control_message("reset", {"ids": sorted(self._stream.subscriptions), "conflated": conflated})
        return item.message


def _after(command: Subscribe) -> DeliveredOrder | None:
    """The version that the client has. Raises ProblemError (400) for a tag that no value can have."""
    after = None if command.after is None else parse_tag(command.after)
    if after is None and command.after is not None:
        raise ProblemError(Problem("bad_request", "after is none of this service's tags: leave it out"))
    return after


def _filter(command: Subscribe) -> SubscriptionFilter:
    """The filter of the subscription."""
    window = milliseconds_at(command.window) if isinstance(command.window, datetime) else command.window
    where = tuple(sorted(command.where.items()))
    silent_for = None if command.silent_for is None else seconds_of(command.silent_for)
    return SubscriptionFilter(command.state, command.key, command.prefix or "", where, window, silent_for)


class WebSockets:
    """Opens WebSockets. `origins` are the pages that may connect, in addition to those that this instance serves."""

    def __init__(self, dependencies: Dependencies, push: PushService, origins: frozenset[str]) -> None:
        self._dependencies = dependencies
        self._push = push
        self._origins = origins

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """Serve one WebSocket. Raises ProblemError."""
        self._check_origin(request)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise ProblemError(Problem("bad_request", "This is a WebSocket: connect with Upgrade: websocket"))
        limits, sender = self._push.limits, principal(request)
        relays = is_of_instance(request.headers, sender)
        if relays:
            require_same_layout(request.headers, self._dependencies.states)
        socket = web.WebSocketResponse(
            protocols=[PROTOCOL],
            heartbeat=None if relays else PING_S,
            max_msg_size=limits.message_bytes,
            compress=False,
        )
        with self._push.stream(sender, relays=relays) as stream, suppress(ConnectionError):
            writer = ClientWriter(request, await socket.prepare(request), limits.stalled_s)
            connection = WatchConnection(self._dependencies, self._push, stream, request[METER], relays=relays)
            await connection.serve(socket, writer)
        return socket

    def _check_origin(self, request: web.Request) -> None:
        """A page of another origin must not connect with its visitor's credentials. Other clients send no origin."""
        origin = request.headers.get("Origin")
        if origin is None or origin in self._origins or _host(origin) == request.host:
            return
        raise ProblemError(Problem("not_yours", f"{origin} may not connect: name it in STATELOOP_ORIGINS"))


def _close_code(refused: Problem | None) -> WSCloseCode:
    if refused is None:
        return WSCloseCode.GOING_AWAY
    codes = {"too_slow": WSCloseCode.TRY_AGAIN_LATER, "failed": WSCloseCode.INTERNAL_ERROR}
    return codes.get(refused.kind, WSCloseCode.POLICY_VIOLATION)


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _error(name: str | None, problem: Problem) -> bytes:
    """The message for a problem. Its `retry_after` is the header Retry-After of a response."""
    retry_after = {} if problem.retry_after is None else {"retry_after": problem.retry_after}
    return control_message("error", {"id": name, "problem": problem.members() | retry_after})
