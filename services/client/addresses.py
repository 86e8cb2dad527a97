"""The addresses of the service: the given ones, those of the instances that it lists, and which do not answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from contracts.api import INSTANCES
from services.client.errors import AttemptFailedError, ClientError, InvalidAddressError
from services.client.responses import content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.client.transport import ClientTransport

WITHIN_S = 2.0
PAUSE_S = 1.0
"""The least interval between two requests for the instances."""
REFRESH_S = 30.0
"""The interval in which the instances are requested without a failure: all of them may be replaced, one by one."""
FIRST_SUSPICION_S = 1.0
MAX_SUSPICION_S = 60.0


class Addresses:
    """The given addresses, and with `discover` those of all instances. Every instance answers for every key."""

    def __init__(
        self, urls: Sequence[str], transport: ClientTransport, clock: Callable[[], float], *, discover: bool
    ) -> None:
        self._given = [_valid(url) for url in urls]
        self._listed: list[str] | None = None
        self._transport = transport
        self._clock = clock
        self._discover = discover
        self._doubts: dict[str, tuple[float, float]] = {}
        self._requested = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def by_preference(self) -> list[str]:
        """Return the addresses to try, the given ones first. Those that have just failed come last."""
        now = self._clock()
        if self._listed is None or now - self._requested >= REFRESH_S:
            self._request_instances()
        known = dict.fromkeys([*self._given, *(self._listed or ())])
        return sorted(known, key=lambda url: url in self._doubts and now < self._doubts[url][0])

    def failed(self, url: str) -> None:
        """Note a failure: the address comes last for a while, longer each time; request the instances again."""
        _, waited = self._doubts.get(url, (0.0, FIRST_SUSPICION_S / 2))
        longer = min(waited * 2, MAX_SUSPICION_S)
        self._doubts[url] = self._clock() + longer, longer
        self._request_instances()

    def worked(self, url: str) -> None:
        """Note a success."""
        self._doubts.pop(url, None)

    async def close(self) -> None:
        """Stop the request for the instances."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _request_instances(self) -> None:
        """Request the instances in the background, at a limited rate."""
        now = self._clock()
        if self._discover and (self._task is None or self._task.done()) and now - self._requested >= PAUSE_S:
            self._requested = now
            self._task = asyncio.create_task(self._list_instances())

    async def _list_instances(self) -> None:
        """Request the instances; while that fails, the known addresses stay in use."""
        for url in self.by_preference():
            with suppress(AttemptFailedError, ClientError, KeyError, TypeError, AttributeError, ValueError):
                body = content(await self._transport.send(url, INSTANCES.path, WITHIN_S), INSTANCES.path)
                listed = [_valid(instance["url"]) for instance in body["instances"]]
                self._listed = [url for url in listed if _scheme(url) == _scheme(self._given[0])]  # for the token
                return


def _scheme(url: str) -> str:
    return urlsplit(url).scheme


def _valid(url: str) -> str:
    """Return the address without a last slash. Raises InvalidAddressError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidAddressError(url)
    return url.rstrip("/")
