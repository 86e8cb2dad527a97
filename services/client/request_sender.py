"""Sends one request: to the owner of the key first, then to other instances, within one deadline."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from services.client.responses import MisdirectedError
from services.client.transport import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


class RequestSender:
    """Sends requests."""

    def __init__(self, transport: ClientTransport, discovery: Discovery, retrier: Retrier) -> None:
        self._transport = transport
        self._discovery = discovery
        self._retrier = retrier

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
