"""GET /v1/watch: many subscriptions on one connection."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, WSMsgType, web
from pydantic import ValidationError

from contracts.metrics import query as metrics
from services.query.http.client_writer import ClientWriter
from services.query.http.frames import control_message, delivery_message, websocket_frame
from services.query.http.request_context import METER, principal
from services.query.http.watch_commands import CLIENT_COMMAND, PEER_COMMAND, Relay, Resume, Subscribe, Unsubscribe
from services.query.lookup.authentication import ANONYMOUS, PEER
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.version_reference import parse_tag
from services.query.push.client_stream import (
    InitialStateSent,
    PartitionsStarted,
    ProgressMark,
    StreamRefused,
    StreamReset,
    SubscriptionDenied,
)
from services.query.push.peer_relays import FORWARDED

if TYPE_CHECKING:
    from services.query.dependencies import Parts
    from services.query.lookup.rate_limit import RateMeter
    from services.query.push.client_stream import ClientStream, ControlItem, StreamItem
    from services.query.push.push_service import PushService

PROTOCOL = "stateloop.v1"
"""The subprotocol. A browser, which can send no headers, offers its token beside it: api/offered.py."""
PING_S = 20.0
"""How often a client is asked whether it is there; it has half of that to answer."""
UNHEARD_MOST = 100
"""How many answers may wait for a client; then nothing more that it says is read."""


class WatchConnection:
    """One connection: reads what the client says, and writes what it is told."""

    def __init__(
        self, parts: Parts, watching: PushService, stream: ClientStream, meter: RateMeter, *, relays: bool
    ) -> None:
        self._meter = meter
        self._counts = parts.counts
        self._clock = parts.clock
        self._watching = watching
        self._relays = relays
        self._stream = stream

    async def listen(self, socket: web.WebSocketResponse) -> None:
        """Do what the client says, until it goes."""
        async for said in socket:
            if said.type is not WSMsgType.TEXT:
                await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"send text")
                return
            self._stream.say(self._answer(said.data))
            await self._stream.heard(UNHEARD_MOST)

    async def tell(self, outlet: ClientWriter) -> None:
        """Write what goes to the client, until nothing more does."""
        await self._stream.flow(outlet, self._written)

    def _answer(self, said: str) -> bytes:
        """Raises nothing: what is wrong with a subscription is told, and the others go on."""
        name = None
        try:
            asked = (PEER_COMMAND if self._relays else CLIENT_COMMAND).validate_json(said)
            name = asked.id
            return self._done(asked)
        except ValidationError as error:
            detail = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            return _error(name, Problem("bad_request", detail))
        except ProblemError as error:
            return _error(name, error.problem)

    def _done(self, asked: Subscribe | Relay | Resume | Unsubscribe) -> bytes:
        if isinstance(asked, Unsubscribe):
            self._watching.unsubscribe(self._stream, asked.id)
            return control_message("unsubscribed", {"id": asked.id})
        if isinstance(asked, Resume):
            self._watching.resume(self._stream, asked.id, asked.partitions)
            return control_message("resumed", {"id": asked.id})
        if isinstance(asked, Relay):
            current = asked.current
            self._watching.relay(self._stream, asked.id, asked.interest(), asked.partitions, current=current)
            return control_message("subscribed", {"id": asked.id})
        self._subscribe(asked)
        return control_message("subscribed", {"id": asked.id})

    def _subscribe(self, asked: Subscribe) -> None:
        if not self._meter.take(1):
            self._counts.add(metrics.REFUSED, "rate")
            retry_after_s = self._meter.retry_after_s()
            raise ProblemError(Problem("too_many", f"Subscribe again in {retry_after_s} s", retry_after=retry_after_s))
        most = self._watching.limits.subscriptions
        if asked.id not in self._stream.subscriptions and len(self._stream.subscriptions) >= most:
            raise ProblemError(Problem("too_many", f"A connection has {most} subscriptions at most: open another"))
        after = None if asked.after is None else parse_tag(asked.after)
        self._watching.subscribe(self._stream, asked.id, asked.interest(), current=asked.current, after=after)

    def _written(self, item: StreamItem) -> bytes:
        if isinstance(item, list):
            self._counts.add(metrics.DELIVERED, "websocket", by=len(item))
            for letter in item:
                self._counts.observe(metrics.PUSH_SECONDS, self._clock() - letter.notice.at)
            return b"".join(websocket_frame(delivery_message(letter)) for letter in item)
        return websocket_frame(self._sign(item))

    def _sign(self, item: ControlItem) -> bytes:
        """What says nothing of a key."""
        if isinstance(item, ProgressMark):
            return control_message("mark", self._watching.progress(self._stream, item))
        if isinstance(item, InitialStateSent):
            return control_message("current", {"id": item.subscription.name, "partitions": sorted(item.partitions)})
        if isinstance(item, PartitionsStarted):
            reached = {str(one): offset for one, offset in item.reached.items()}
            return control_message("begun", {"id": item.subscription.name, "reached": reached})
        if isinstance(item, SubscriptionDenied | StreamRefused):
            return _error(item.name if isinstance(item, SubscriptionDenied) else None, item.problem)
        if isinstance(item, StreamReset):
            self._counts.add(metrics.RESETS, "websocket")
            conflated = self._stream.mailbox.conflated
            return control_message("reset", {"ids": sorted(self._stream.subscriptions), "conflated": conflated})
        return item.message


class WebSockets:
    """The connections of this instance. `origins` are the pages that may connect, beside those that it serves."""

    def __init__(self, parts: Parts, watching: PushService, origins: frozenset[str]) -> None:
        self._parts = parts
        self._watching = watching
        self._origins = origins

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """Open one. Raises ProblemError."""
        self._check_origin(request)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise ProblemError(Problem("bad_request", "This is a WebSocket: connect with Upgrade: websocket"))
        limits = self._watching.limits
        socket = web.WebSocketResponse(
            protocols=[PROTOCOL], heartbeat=PING_S, max_msg_size=limits.message_bytes, compress=False
        )
        who = principal(request)
        relays = FORWARDED in request.headers and who in (PEER, ANONYMOUS)
        with self._watching.stream(who, relays=relays) as stream, suppress(ConnectionError):
            outlet = ClientWriter(request, await socket.prepare(request), limits.stalled_s)
            conversation = WatchConnection(self._parts, self._watching, stream, request[METER], relays=relays)
            await self._converse(conversation, stream, socket, outlet)
        return socket

    async def _converse(
        self, conversation: WatchConnection, stream: ClientStream, socket: web.WebSocketResponse, outlet: ClientWriter
    ) -> None:
        """Ends when either ends: the client goes, or its token, or the service."""
        telling = asyncio.create_task(conversation.tell(outlet))
        listening = asyncio.create_task(conversation.listen(socket))
        try:
            await asyncio.wait({telling, listening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stream.end()
            listening.cancel()
            ended = await asyncio.gather(telling, listening, return_exceptions=True)
            await socket.close(code=_close_code(stream.refused))
        for one in ended:
            if isinstance(one, Exception):
                raise one

    def _check_origin(self, request: web.Request) -> None:
        """A page of another origin must not connect with what its visitor's browser sends along. Others have none."""
        origin = request.headers.get("Origin")
        if origin is None or origin in self._origins or _host(origin) == request.host:
            return
        raise ProblemError(Problem("not_yours", f"{origin} may not connect: name it in STATELOOP_ORIGINS"))


def _close_code(refused: Problem | None) -> WSCloseCode:
    if refused is None:
        return WSCloseCode.GOING_AWAY
    return WSCloseCode.TRY_AGAIN_LATER if refused.kind == "too_slow" else WSCloseCode.POLICY_VIOLATION


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _error(name: str | None, problem: Problem) -> bytes:
    return control_message("error", {"id": name, "problem": problem.members()})
