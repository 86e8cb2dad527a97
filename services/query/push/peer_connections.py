"""Connections to other instances, at which streams watch what those own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from services.query.layout import layout_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.dependencies import Dependencies
    from services.query.push.routing_table import RoutingTable
    from services.query.push.subscription import Subscription

CONNECT_S = 1.0
HANDSHAKE_S = 5.0
"""The timeout of the response that opens a WebSocket. What follows has its own: the client drops this one then."""
FORWARDED = "Stateloop-Hop"
"""Header of a request from another instance: it is not forwarded again."""


class PeerConnections:
    """Opens a WebSocket per stream and owner, with the token that instances send each other."""

    def __init__(self, dependencies: Dependencies, routing: RoutingTable, flush: Callable[[], None]) -> None:
        token = dependencies.settings.peer_token
        self.headers = dict([(FORWARDED, "1"), layout_header(dependencies.states)])
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token.get_secret_value()}"
        self.clock = dependencies.clock
        self._routing = routing
        self.flush = flush
        self._session: ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def connect(self, url: str) -> Any:
        """The WebSocket to an instance, as an asynchronous context manager."""
        if self._session is None:
            timeout = ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=HANDSHAKE_S)
            self._session = ClientSession(connector=TCPConnector(limit=0), timeout=timeout)
        return self._session.ws_connect(f"{url}/v1/watch", headers=self.headers, max_msg_size=0)

    def routes(self, subscription: Subscription) -> set[str]:
        """The URLs of the other instances that own partitions of the subscription."""
        state = subscription.filter.state
        return {route for partition in subscription.since if (route := self._routing.route(state, partition))}

    def owns(self, url: str, state: str, key: str, partition: int | None) -> bool:
        """Whether the instance owns the key. Its record may be in another partition than that of its hash."""
        number = self._routing.partition(state, key) if partition is None else partition
        return self._routing.route(state, number) == url

    def wanted(self, url: str, subscription: Subscription) -> dict[int, int | None]:
        """The partitions of the instance, each with the offset after which it must deliver."""
        state = subscription.filter.state
        return {
            partition: since
            for partition, since in subscription.since.items()
            if self._routing.route(state, partition) == url
        }
