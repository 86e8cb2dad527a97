"""One call of the service: the right instance is asked, and then others, within one deadline."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from services.client.replies import Elsewhere
from services.client.transport import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from services.client.answers import T
    from services.client.discovery import Discovery
    from services.client.transport import Reply, Transport
    from services.client.tries import Tries, Try

TRY_S = 2.0
"""An instance that says nothing for so long is given up for another."""


class Call(NamedTuple):
    """What is asked. `place` is the state and key that it is about, if it is about one."""

    what: str
    target: str
    deadline_s: float
    place: tuple[str, str] | None = None
    wait_s: float = 0.0
    """For how long the instance itself may wait."""
    body: Mapping[str, Any] | None = None


class Calls:
    """Makes calls."""

    def __init__(self, transport: Transport, discovery: Discovery, tries: Tries) -> None:
        self._transport = transport
        self._discovery = discovery
        self._tries = tries

    async def made(self, call: Call, read: Callable[[Reply], T]) -> T:
        """What `read` makes of the reply; it may raise TryAgain. Raises NoAnswer, Refused, Unreadable."""
        tried: Counter[str] = Counter()

        async def once(one: Try) -> T:
            url = min(self._discovery.candidates(call.place), key=tried.__getitem__)
            tried[url] += 1
            return await self.asked(url, call, min(one.left_s, TRY_S + call.wait_s), read)

        return await self._tries.made(call.what, call.deadline_s, once)

    async def asked(self, url: str, call: Call, within_s: float, read: Callable[[Reply], T]) -> T:
        """The same of one instance, once. Raises TryAgain, too."""
        try:
            reply = await self._transport.ask(url, call.target, within_s, call.body)
            self._discovery.worked(url)
            return read(reply)
        except Unreachable:
            self._discovery.failed(url)
            raise
        except Elsewhere:
            self._discovery.look()
            raise
