"""The addresses of the service: the given ones, and those of the instances that it lists. Requests take turns."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from contracts.api.admin import INSTANCES
from services.client.errors import AttemptFailedError, ClientError, InvalidAddressError
from services.client.responses import content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.client.transport import ClientTransport
    from services.runtime.retry import Draw

WITHIN_S = 2.0
PAUSE_S = 1.0
"""The least interval between two requests for the instances."""
REFRESH_S = 30.0
"""The interval in which the instances are requested without a failure: all of them may be replaced, one by one."""
FIRST_SUSPICION_S = 1.0
MAX_SUSPICION_S = 60.0


class Addresses:
    """The given addresses, and with `discover` those of all instances. Every instance answers for every key.

    A listed address gets requests once it has answered one of the client's own: clients may reach the given ones only.
    """

    def __init__(
        self,
        urls: Sequence[str],
        transport: ClientTransport,
        clock: Callable[[], float],
        *,
        discover: bool,
        draw: Draw = random.uniform,
    ) -> None:
        self._given = [_valid(url) for url in urls]
        self._listed: list[str] | None = None
        self._answering = set(self._given)
        self._transport = transport
        self._clock = clock
        self._discover = discover
        self._doubts: dict[str, tuple[float, float]] = {}
        self._requested = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self._turn = int(draw(0, len(self._given)))  # clients with one list of addresses begin at different ones

    def by_preference(self) -> list[str]:
        """Return the addresses to try, each time beginning with the next one of those that answer.

        Those that have not answered yet follow, and then those that have just failed.
        """
        if self._listed is None or self._clock() - self._requested >= REFRESH_S:
            self._request_instances()
        answering, others = self._known()
        at = self._turn % max(len(answering), 1)
        self._turn += 1
        return [*answering[at:], *answering[:at], *others]

    def failed(self, url: str) -> None:
        """Note a failure: the address comes last for a while, longer each time; request the instances again."""
        if url not in self._given:
            self._answering.discard(url)
        _, waited = self._doubts.get(url, (0.0, FIRST_SUSPICION_S / 2))
        longer = min(waited * 2, MAX_SUSPICION_S)
        self._doubts[url] = self._clock() + longer, longer
        self._request_instances()

    def worked(self, url: str) -> None:
        """Note a success."""
        self._answering.add(url)
        self._doubts.pop(url, None)

    async def close(self) -> None:
        """Stop the request for the instances."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _known(self) -> tuple[list[str], list[str]]:
        """Return the addresses that answer, and the others, those that have just failed last."""
        now = self._clock()
        failed = {url for url, (until, _) in self._doubts.items() if now < until}
        known = dict.fromkeys([*self._given, *(self._listed or ())])
        answering = [url for url in known if url in self._answering and url not in failed]
        return answering, sorted((url for url in known if url not in answering), key=lambda url: url in failed)

    def _request_instances(self) -> None:
        """Request the instances in the background, at a limited rate."""
        now = self._clock()
        if self._discover and (self._task is None or self._task.done()) and now - self._requested >= PAUSE_S:
            self._requested = now
            self._task = asyncio.create_task(self._list_instances())

    async def _list_instances(self) -> None:
        """Request the instances; while that fails, the known addresses stay in use. Then try the new addresses."""
        for url in chain(*self._known()):
            if (listed := await self._instances_of(url)) is not None:
                self._listed = [url for url in listed if _scheme(url) == _scheme(self._given[0])]  # for the token
                break
        for url in self._listed or ():
            if url not in self._answering and await self._instances_of(url) is not None:
                self.worked(url)

    async def _instances_of(self, url: str) -> list[str] | None:
        """Return the addresses that this one lists; None if it does not answer with a valid list."""
        with suppress(AttemptFailedError, ClientError, KeyError, TypeError, AttributeError, ValueError):
            body = content(await self._transport.send(url, INSTANCES.path, WITHIN_S), INSTANCES.path)
            return [_valid(instance["url"]) for instance in body["instances"]]
        return None


def _scheme(url: str) -> str:
    return urlsplit(url).scheme


def _valid(url: str) -> str:
    """Return the address without a last slash. Raises InvalidAddressError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidAddressError(url)
    return url.rstrip("/")
