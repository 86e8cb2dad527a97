"""Sends requests, and opens streams: at the owner of the key first, then at other instances."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from services.client.responses import MisdirectedError
from services.client.retrier import AttemptFailedError
from services.client.transport import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from services.client.answers import T
    from services.client.discovery import Discovery
    from services.client.retrier import Retrier
    from services.client.transport import ClientTransport, InstanceResponse

ATTEMPT_S = 2.0
"""The timeout of one attempt at one instance."""


class ClientRequest(NamedTuple):
    """One request. `place` is its state and key, if it has one."""

    what: str
    target: str
    deadline_s: float
    place: tuple[str, str] | None = None
    wait_s: float = 0.0
    """How long the instance may wait for a version."""
    body: Mapping[str, Any] | None = None


class StreamTarget(NamedTuple):
    """The description of a stream, and its state and key if it has one."""

    what: str
    place: tuple[str, str] | None
    patience_s: float


class RequestSender:
    """Sends requests. `clock` returns seconds."""

    def __init__(
        self, transport: ClientTransport, discovery: Discovery, retrier: Retrier, clock: Callable[[], float]
    ) -> None:
        self._transport = transport
        self._discovery = discovery
        self._retrier = retrier
        self._clock = clock

    async def send(self, request: ClientRequest, read: Callable[[InstanceResponse], T]) -> T:
        """Return `read(response)`; it may raise AttemptFailedError. Raises the errors of the client."""
        tried: Counter[str] = Counter()

        async def once(left_s: float) -> T:
            url = min(self._discovery.candidates(request.place), key=tried.__getitem__)
            tried[url] += 1
            return await self.send_to(url, request, min(left_s, ATTEMPT_S + request.wait_s), read)

        return await self._retrier.run(request.what, request.deadline_s, once)

    async def send_to(
        self, url: str, request: ClientRequest, within_s: float, read: Callable[[InstanceResponse], T]
    ) -> T:
        """Send to one instance, once. Raises AttemptFailedError, too."""
        try:
            reply = await self._transport.send(url, request.target, within_s, request.body)
            self._discovery.worked(url)
            return read(reply)
        except UnreachableError:
            self._discovery.failed(url)
            raise
        except MisdirectedError:
            self._discovery.look()
            raise

    async def stream(
        self, aim: StreamTarget, connect: Callable[[str], AsyncGenerator[T | None, None]]
    ) -> AsyncGenerator[T, None]:
        """Yield what `connect` yields, which ends with AttemptFailedError, from one instance after the other.

        None is a heartbeat. Raises NoAnswerError after `patience_s` without anything.
        """
        tried: Counter[str] = Counter()
        heard, failures = self._clock(), 0
        while True:
            url = min(self._discovery.candidates(aim.place), key=tried.__getitem__)
            tried[url] += 1
            try:
                async with aclosing(connect(url)) as updates:
                    async for update in updates:
                        heard, failures = self._clock(), 0
                        tried.clear()
                        if update is not None:
                            yield update
                            heard = self._clock()  # the reader's time is not theirs
            except AttemptFailedError as failed:
                failures += 1
                if isinstance(failed, UnreachableError):
                    self._discovery.failed(url)
                if self._clock() - heard >= aim.patience_s:
                    raise failed.kind(aim.what, aim.patience_s, failures, failed.reason) from failed
                await self._retrier.pause(failures, failed)
