"""Discovers the instances of the service, and tracks which ones do not answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from services.client.errors import ClientError, InvalidAddressError
from services.client.instances import Directory, candidates, directory
from services.client.responses import content
from services.client.retrier import AttemptFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.client.transport import ClientTransport

WITHIN_S = 2.0
PAUSE_S = 1.0
"""The least interval between two requests for the members."""
FIRST_SUSPICION_S = 1.0
MAX_SUSPICION_S = 60.0
PATH = "/v1/instances"


class Discovery:
    """The instances that this client knows: the given addresses, and with `discover` the members that they list."""

    def __init__(
        self, urls: Sequence[str], transport: ClientTransport, clock: Callable[[], float], *, discover: bool
    ) -> None:
        self._seeds = [_seed(url) for url in urls]
        self._scheme = urlsplit(self._seeds[0]).scheme
        self._transport = transport
        self._clock = clock
        self._discover = discover
        self._directory = Directory()
        self._doubts: dict[str, tuple[float, float]] = {}
        self._task: asyncio.Task[None] | None = None
        self._looked = float("-inf")

    def candidates(self, place: tuple[str, str] | None) -> list[str]:
        """Return the addresses to try for a state and key, the best first; for None, the addresses of any instance."""
        if not self._directory.members:
            self.look()
        now = self._clock()
        suspects = {url for url, (until, _) in self._doubts.items() if now < until}
        return candidates(self._directory, self._seeds, suspects, place)

    def owner(self, state: str, key: str) -> str | None:
        """Return the address of the key's owner, if known."""
        return self._directory.owner(state, key)

    def failed(self, url: str) -> None:
        """Note a failure: the instance comes last for a while, longer each time; request the members again."""
        _, waited = self._doubts.get(url, (0.0, FIRST_SUSPICION_S / 2))
        longer = min(waited * 2, MAX_SUSPICION_S)
        self._doubts[url] = self._clock() + longer, longer
        self.look()

    def worked(self, url: str) -> None:
        """Note a success."""
        self._doubts.pop(url, None)

    def answered(self, url: str, instance: str) -> None:
        """Note which instance produced a result: if it is not the one at this address, partitions have moved."""
        if self._directory.names.get(url, instance) != instance:
            self.look()

    def look(self) -> None:
        """Request the members in the background, at a limited rate."""
        now = self._clock()
        if self._discover and (self._task is None or self._task.done()) and now - self._looked >= PAUSE_S:
            self._looked = now
            self._task = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Stop the background request."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _look(self) -> None:
        """Request the members; while that fails, the known addresses stay in use."""
        for url in self.candidates(None):
            with suppress(AttemptFailedError, ClientError, KeyError, TypeError, ValueError, AttributeError):
                body = content(await self._transport.send(url, PATH, WITHIN_S), PATH)
                self._directory = directory(body).of_scheme(self._scheme)
                return


def _seed(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidAddressError(url)
    return url.rstrip("/")
