"""Builds an instance from its settings, and runs it until it receives a stop signal."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from contracts.records.named_states import named_in
from services.query.cluster import InstanceDependencies, InstanceFolder, InstanceIdentity, WindowCloser, build_cluster
from services.query.console.routes import console
from services.query.dependencies import Dependencies
from services.query.health import Health
from services.query.http.assembly import state_api
from services.query.http.instance_routes import InstanceRoutes
from services.query.http.monitoring import MonitoringRoutes
from services.query.http.openapi import OpenApiRoutes
from services.query.http.peer_client import HttpPeerClient
from services.query.http.rule_test_routes import RuleTestRoutes
from services.query.http.server import HttpServer, bind, url_of
from services.query.http.table_routes import TableRoutes, tables_of
from services.query.http.watch_routes import WatchRoutes
from services.query.ingest import (
    ChangeListeners,
    KafkaIngestion,
    KafkaTables,
    TombstoneRetention,
    read_tombstone_retention,
    watch_partition_counts,
    with_partition_counts,
)
from services.query.lookup.authentication import Authenticator, watch_tokens
from services.query.openapi import document
from services.query.store import Store
from services.runtime.job_progress import JobProgress
from services.runtime.shutdown import STOP_SIGNALS
from services.runtime.topic_owners import TopicOwners

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from contracts import Suite
    from contracts.model.named_state import NamedState
    from services.query.cluster import Cluster
    from services.query.http.server import Routes
    from services.query.settings import QuerySettings
    from services.runtime.job_progress import Published
    from services.runtime.kafka.interfaces import Admin, Kafka

log = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class TopicFacts(NamedTuple):
    """The brokers' metadata of the topics: the states with their partition counts, and how long tombstones are kept.

    All parts ask for more by one `admin`.
    """

    states: Mapping[str, NamedState]
    retention: TombstoneRetention
    kafka: Kafka
    admin: Admin


class Core(NamedTuple):
    """The layers below HTTP: stores, ingest, and the cluster."""

    dependencies: Dependencies
    ingestion: KafkaIngestion
    cluster: Cluster
    listeners: ChangeListeners


class HttpLayer(NamedTuple):
    """The HTTP server, and the tasks that it needs while it runs."""

    server: HttpServer
    health: Health
    tasks: list[Coroutine[Any, Any, None]]


async def serve(settings: QuerySettings, suite: Suite, kafka: Kafka) -> None:
    """Run an instance until SIGTERM or SIGINT. Raises a QueryServiceError, in a group, if it cannot go on.

    The clients of Kafka that do not end with the tasks end with the process.
    """
    settings.check_exposure()
    authenticator = Authenticator(settings.tokens, settings.peer_token)
    stopped = _stop_event()
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(bind(settings))
        topics = await _read_topics(settings, suite, kafka, stopped.is_set)
        if topics is None:
            return
        core = _build_core(settings, suite, topics, url_of(settings, listening), stack)
        http = await _build_http(suite, core, authenticator, topics, stack)
        async with asyncio.TaskGroup() as tasks:
            ingestion = tasks.create_task(core.ingestion.run())
            cluster = tasks.create_task(core.cluster.run())
            others = [tasks.create_task(task) for task in http.tasks]
            async with http.server.serving(listening):
                await stopped.wait()
                http.health.stopping = True
                await _cancel(cluster)  # other instances take over; requests that still arrive are forwarded to them
                await _cancel(*others)
            await _cancel(ingestion)


def _stop_event() -> asyncio.Event:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    return stopped


async def _read_topics(
    settings: QuerySettings, suite: Suite, kafka: Kafka, stopping: Callable[[], bool]
) -> TopicFacts | None:
    """Return what the brokers know of the topics; None when the service stops."""
    admin = kafka.admin("query-topics")
    states = await asyncio.to_thread(with_partition_counts, named_in(suite), admin, settings.kafka, stopping)
    if states is None:
        return None
    retention = await read_tombstone_retention(states.values(), admin, stopping)
    if retention is None:
        return None
    return TopicFacts(states, TombstoneRetention(retention, _now), kafka, kafka.admin("query"))


def _build_core(settings: QuerySettings, suite: Suite, topics: TopicFacts, url: str, stack: AsyncExitStack) -> Core:
    """Open the stores, and build what fills and shares them. The stack closes what was opened."""
    states, boot = topics.states, _boot_id()
    folder = InstanceFolder(settings.query_data, settings.instance)
    stack.callback(folder.close)
    stores: dict[str, Store] = {}
    for name, state in states.items():
        stores[name] = Store(settings.query_data / name, state, boot)
        stack.callback(stores[name].close)
    listeners = ChangeListeners()
    ingestion = KafkaIngestion(topics.kafka, topics.admin, states, stores, listeners, retention=topics.retention)
    me = InstanceIdentity(settings.instance, url, folder.store, folder.run)
    cluster = build_cluster(settings, suite, me, InstanceDependencies(states, ingestion, stores, _now), topics.kafka)
    listeners.on_restarted.append(cluster.restarted)
    misplaced = ingestion.misplaced.counts
    dependencies = Dependencies(settings, states, stores, cluster, Counts(CATALOGUE), _now, time.monotonic, misplaced)
    return Core(dependencies, ingestion, cluster, listeners)


async def _build_http(
    suite: Suite, core: Core, authenticator: Authenticator, topics: TopicFacts, stack: AsyncExitStack
) -> HttpLayer:
    dependencies, ingestion, cluster, listeners = core
    kafka, admin = topics.kafka, topics.admin
    settings, states = dependencies.settings, dependencies.states
    peer_client = await stack.enter_async_context(HttpPeerClient(settings.peer_token))
    page = await stack.enter_async_context(console(suite, dependencies, kafka, admin))
    api, watch = state_api(dependencies, authenticator, peer_client), WatchRoutes(dependencies)
    listeners.on_changed += [api.waiters.changed, watch.service.changed]
    listeners.on_restarted.append(watch.service.restarted)
    health = Health(dependencies, ingestion.counts, lambda: cluster.has_joined)
    tables = tables_of(suite)
    routes: list[Routes] = [
        MonitoringRoutes(health),
        OpenApiRoutes(document()),
        InstanceRoutes(cluster.announced, states),
        watch,
        page,
        TableRoutes(tables, KafkaTables(kafka)),
        RuleTestRoutes(dependencies, api.readers, api.pages, tables),
        *api.routes,
    ]
    tasks = [
        watch.service.run(),
        health.run(),
        watch_tokens(
            authenticator,
            api.fast_path.forget_callers,
            partial(watch.service.reauthenticate, authenticator.reauthenticate),
        ),
        _window_closer(dependencies, cluster, admin).run(),
        watch_partition_counts(states.values(), admin),
        *(
            TopicOwners(application, kafka.admin("topic-owners"), log.warning).check_async()
            for application in suite.applications
        ),
    ]
    return HttpLayer(HttpServer(dependencies, api.guard, routes, api.fast_path), health, tasks)


def _window_closer(dependencies: Dependencies, cluster: Cluster, admin: Admin) -> WindowCloser:
    """Return what closes the windows by the progress of the jobs."""
    stores = dependencies.stores
    states = [one for one in dependencies.states.values() if one.window is not None and one.expires_by_clock]
    progress = {state.name: JobProgress(admin, state.topic) for state in states}

    def read(state: NamedState) -> Mapping[int, Published]:
        return progress[state.name].read(range(state.partitions)) or {}

    return WindowCloser(states, stores, read, cluster.has_read)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _boot_id() -> str:
    """Return the id of this start of the machine; where there is none, a new one for each start of the service."""
    return BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else str(time.time_ns())
