"""Assembles the routes of the states, and their fast path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.query.http.batch_routes import BatchRoutes
from services.query.http.fast_path import FastPath
from services.query.http.forwarding import Forwarder
from services.query.http.key_routes import KeyRoutes
from services.query.http.page_routes import PageRoutes
from services.query.http.request_guard import RequestGuard
from services.query.http.state_routes import StateRoutes
from services.query.http.windows_routes import WindowsRoutes
from services.query.lookup.key_waiters import KeyWaiters
from services.query.lookup.state_reader import StateReaders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.query.dependencies import Dependencies
    from services.query.http.peer_client import PeerClient
    from services.query.http.server import Routes
    from services.query.lookup.authentication import Authenticator


class StateApi(NamedTuple):
    """The API of the states: its routes and fast path for the server, its waiters for the changes.

    `readers` and `pages` are for routes that read states for other reasons.
    """

    guard: RequestGuard
    routes: Sequence[Routes]
    fast_path: FastPath
    waiters: KeyWaiters
    readers: StateReaders
    pages: PageRoutes


def state_api(dependencies: Dependencies, authenticator: Authenticator, peers: PeerClient | None) -> StateApi:
    """The API below /v1/states. Without `peers`, no request is forwarded."""
    guard, readers, forwarder = (
        RequestGuard(dependencies, authenticator),
        StateReaders(dependencies),
        Forwarder(dependencies, peers),
    )
    waiters = KeyWaiters(dependencies.settings.waits, dependencies.counts)
    keys = KeyRoutes(dependencies, readers, forwarder, waiters)
    batches, pages = BatchRoutes(dependencies, readers, forwarder), PageRoutes(dependencies, readers, forwarder)
    routes: list[Routes] = [
        StateRoutes(dependencies, readers),
        batches,
        pages,
        keys,
        WindowsRoutes(dependencies, readers, forwarder),
    ]
    return StateApi(guard, routes, FastPath(dependencies, guard, keys, batches), waiters, readers, pages)
