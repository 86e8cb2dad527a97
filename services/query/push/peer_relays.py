"""The relays from all other instances that serve subscriptions of this one."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from services.query.push.peer_relay import PeerRelay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import SecretStr

    from services.query.push.subscription import Subscription

FORWARDED = "Stateloop-Hop"
"""Header of a request from another instance: it is not forwarded again."""
CONNECT_S = 1.0
PING_S = 4.0
"""How often another instance is pinged; it has half of that to answer."""


class PeerRelays:
    """One relay per instance that is needed. `token` is the token that instances send each other."""

    def __init__(
        self,
        token: SecretStr | None,
        since: Callable[[Subscription, str], Mapping[int, int | None]],
        on_delivered: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._headers = {FORWARDED: "1"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token.get_secret_value()}"
        self._since = since
        self._on_delivered = on_delivered
        self._clock = clock
        self._session: ClientSession | None = None
        self._relays: dict[str, PeerRelay] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def route(self, subscription: Subscription, urls: Iterable[str]) -> None:
        """Relay the subscription from these instances, and from no others."""
        wanted = set(urls)
        for url, relay in list(self._relays.items()):
            if url not in wanted:
                relay.remove(subscription)
                self._close_idle(url)
        for url in wanted:
            self._relay(url).add(subscription)

    def resume(self, url: str, subscription: Subscription, partition: int) -> None:
        """See PeerRelay.resume."""
        self._relay(url).resume(subscription, partition)

    async def close(self) -> None:
        """Close all relays."""
        for url in list(self._relays):
            self._close(url)
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _relay(self, url: str) -> PeerRelay:
        found = self._relays.get(url)
        if found is None:
            if self._session is None:
                timeout = ClientTimeout(total=None, sock_connect=CONNECT_S)
                self._session = ClientSession(connector=TCPConnector(limit=0), timeout=timeout)
            connect = partial(
                self._session.ws_connect, f"{url}/v1/watch", headers=self._headers, heartbeat=PING_S, max_msg_size=0
            )
            since = partial(self._since_of, url)
            found = self._relays[url] = PeerRelay(connect, since, self._on_delivered, self._clock)
            self._tasks[url] = asyncio.create_task(found.run())
        return found

    def _since_of(self, url: str, subscription: Subscription) -> Mapping[int, int | None]:
        return self._since(subscription, url)

    def _close_idle(self, url: str) -> None:
        if not self._relays[url]:
            self._close(url)

    def _close(self, url: str) -> None:
        del self._relays[url]
        self._tasks.pop(url).cancel()
