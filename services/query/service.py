"""Puts an instance together from its settings, and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from contracts.records.named_states import named
from services.query.cluster.assembly import joined
from services.query.cluster.identity import Home
from services.query.cluster.instance import Surroundings
from services.query.cluster.membership import Identity
from services.query.console.assembly import console
from services.query.dependencies import Parts
from services.query.health import Health
from services.query.http.assembly import state_api
from services.query.http.instance_routes import InstanceRoutes
from services.query.http.monitoring import MonitoringRoutes
from services.query.http.openapi import OpenApiRoutes
from services.query.http.peer_client import HttpPeerClient
from services.query.http.server import HttpServer, bind, url_of
from services.query.http.watch_routes import WatchRoutes
from services.query.ingest.kafka_ingestion import Follower
from services.query.ingest.listeners import Listeners
from services.query.ingest.partition_counts import watched
from services.query.ingest.tombstones import Removals, kept
from services.query.ingest.topics import sized
from services.query.lookup.authentication import Authenticator, watch_tokens
from services.query.openapi import document
from services.query.store.lmdb_store import LmdbStore
from services.runtime.topic_owners import TopicOwners

if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

    from contracts import Application
    from contracts.model.named_state import NamedState
    from services.query.cluster.cluster import Cluster
    from services.query.http.peer_client import PeerClient
    from services.query.http.server import Routes
    from services.query.settings import QuerySettings
    from services.query.store.store import Store

log = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
BOOT = Path("/proc/sys/kernel/random/boot_id")


class _Ground(NamedTuple):
    """What an instance is built on: the states as the brokers have them, and where it is reached."""

    states: Mapping[str, NamedState]
    removals: Removals
    url: str


class Core(NamedTuple):
    """What reads the topics and says what may be answered."""

    parts: Parts
    follower: Follower
    cluster: Cluster
    listeners: Listeners


class _Ways(NamedTuple):
    """What answering needs beside the core."""

    access: Authenticator
    proxy: PeerClient
    page: Routes
    listening: socket
    owners: TopicOwners


async def serve(settings: QuerySettings, application: Application) -> None:
    """Run an instance until SIGTERM or SIGINT. Raises a QueryError or StoreError, in a group, if it cannot go on."""
    settings.check_exposure()
    access = Authenticator(settings.tokens, settings.peer_token)
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(bind(settings))
        found = await asyncio.to_thread(sized, named(application), settings.client(), stopped.is_set)
        if found is None:
            return
        longest = await asyncio.to_thread(kept, found.values(), settings.client(), stopped.is_set)
        if longest is None:
            return
        ground = _Ground(found, Removals(longest, _now), url_of(settings, listening))
        core = _core(settings, application, ground, stack)
        proxy = await stack.enter_async_context(HttpPeerClient(settings.peer_token))
        page = await stack.enter_async_context(console(application, core.parts))
        owners = TopicOwners(application, settings.client(), log.warning)
        await _answer(core, _Ways(access, proxy, page, listening, owners), stopped)


def _core(settings: QuerySettings, application: Application, ground: _Ground, stack: AsyncExitStack) -> Core:
    """The stores and what keeps them up. What was opened is closed with the stack."""
    found = ground.states
    home = Home(settings.query_data, settings.instance)
    stack.callback(home.close)
    listeners, boot = Listeners(), _boot()
    stores: dict[str, Store] = {}
    for name, state in found.items():
        stores[name] = LmdbStore(settings.query_data / name, state, boot)
        stack.callback(stores[name].close)
    follower = Follower(settings.client(), found, stores, listeners, ground.removals)
    me = Identity(settings.instance, ground.url, home.store, home.run)
    cluster = joined(settings, application, me, Surroundings(found, follower, stores, _now))
    listeners.on_restarted.append(cluster.restarted)
    parts = Parts(settings, found, stores, cluster, Counts(CATALOGUE), _now, time.monotonic, follower.misplaced.counts)
    return Core(parts, follower, cluster, listeners)


async def _answer(core: Core, ways: _Ways, stopped: asyncio.Event) -> None:
    """Answer until told to stop; then leave the cluster, end what stays open, and answer what was asked."""
    parts, follower, cluster, listeners = core
    access, proxy, page, listening, _ = ways
    api = state_api(parts, access, proxy)
    push = WatchRoutes(parts)
    listeners.on_changed += [api.waiters.changed, push.service.changed]
    listeners.on_restarted.append(push.service.restarted)
    health = Health(parts, follower.tally, lambda: cluster.instance.holds.view.contact is not None)
    pieces: list[Routes] = [
        MonitoringRoutes(health, parts.counts),
        OpenApiRoutes(document()),
        InstanceRoutes(cluster, parts.states),
        push,
        page,
        *api.routes,
    ]
    async with asyncio.TaskGroup() as tasks:
        lasting = [tasks.create_task(one) for one in (follower.run(), cluster.run())]
        renewing = watch_tokens(
            access, api.fast_path.forget_callers, partial(push.service.reauthenticate, access.reauthenticate)
        )
        counting = watched(parts.states.values(), parts.settings.client())
        owned = ways.owners.check_async()
        ending = [tasks.create_task(one) for one in (push.service.run(), health.run(), renewing, counting, owned)]
        async with HttpServer(parts, api.guard, pieces, api.fast_path).serving(listening):
            await stopped.wait()
            health.stopping = True
            await _ended(lasting[1:])  # others answer from now on; what is still asked here is handed on to them
            await _ended(ending)
        await _ended(lasting[:1])


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _boot() -> str:
    """Names the start of the machine. Where it has no name, each start of the service is another."""
    return BOOT.read_text(encoding="ascii").strip() if BOOT.exists() else str(time.time_ns())
