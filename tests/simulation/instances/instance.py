"""An instance of the query service: the real cluster, ingest and store, as one process after the other."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from services.query.cluster import InstanceDependencies, InstanceIdentity, WindowCloser, build_cluster
from services.query.dependencies import Dependencies
from services.query.errors import PartitionsChangedError
from services.query.http.websocket import WatchConnection
from services.query.ingest import ChangeListeners, KafkaIngestion, TombstoneRetention, watch_partition_counts
from services.query.layout import require_same_layout
from services.query.lookup.authentication import ANONYMOUS, PEER
from services.query.lookup.problems import ProblemError
from services.query.lookup.rate_limit import RateMeter
from services.query.lookup.state_reader import ANSWERING_ROLES
from services.query.push.push_service import PushService
from services.query.settings import QuerySettings
from services.query.store import StatePartition
from services.runtime.job_progress import JobProgress
from tests.simulation.instances.connections import (
    Connection,
    InstanceConnections,
    Metadata,
    MetadataAdmin,
    StartingClient,
)
from tests.simulation.instances.crashable_store import CrashableStore
from tests.simulation.instances.handlers import Handlers, InstancePeers, Reply
from tests.simulation.instances.job import FIRST_MS
from tests.simulation.instances.requests import settle
from tests.simulation.instances.script import CLIENTS
from tests.simulation.kafka.clients import ModelKafka
from tests.simulation.loop import RUNNING, Process

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path

    from contracts import Suite
    from contracts.model.named_state import NamedState
    from services.query.cluster import Cluster
    from services.query.limits import WatchLimits
    from services.query.store import Store
    from services.runtime.kafka.interfaces import Admin
    from tests.simulation.instances.handlers import Request
    from tests.simulation.instances.requests import Requests
    from tests.simulation.instances.sockets import Socket
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import WatchedBroker

RESTART_S = 0.5
"""The pause before a process that has ended by itself is started again, at least."""
RECOVERED_S = 1.0
"""The time after which an instance that was cut off has heard the others."""


@dataclass(frozen=True)
class Surroundings:
    """What all instances share."""

    seed: int
    loop: SimulationLoop
    broker: WatchedBroker
    requests: Requests
    suite: Suite
    state: NamedState
    """As it is declared. Each process reads the number of its partitions."""
    retention_ms: int
    """The time for which the topic keeps tombstones."""
    replicas: int
    batch: int
    broker_s: float
    limits: WatchLimits
    errors: list[str] = field(default_factory=list)
    """The errors with which processes ended."""


class SimulatedInstance:
    """An instance with its folder, over its processes."""

    def __init__(self, name: str, folder: Path, around: Surroundings, random: Random) -> None:
        self.name = name
        self.processes: list[Process] = []
        self.handlers: Handlers | None = None
        self.cluster: Cluster | None = None
        """None while no process runs."""
        self.push: PushService | None = None
        self.ingestion: KafkaIngestion | None = None
        self.sockets: dict[Socket, None] = {}
        """The ends of WebSockets that the process has."""
        self._answering: dict[asyncio.Task[None], None] = {}
        """What answers the requests that wait."""
        self._folder = folder
        self._around = around
        self._settings = QuerySettings(application="simulated", instance=name, replicas=around.replicas)
        self._connections = {
            client: Connection(around.loop, random, lambda found: found.uniform(0.001, around.broker_s))
            for client in CLIENTS[1:]
        }
        self.metadata = Metadata(around.broker, around.loop.time)
        self._starting = StartingClient(
            around.loop, around.broker, Random(f"{around.seed} {name} starts"), self.metadata
        )
        self._cuts: Counter[str] = Counter()
        self._cut_at = float("-inf")
        """When a connection was cut or restored last."""
        self._is_broker_away = False
        self._folders = 1
        self._boots = 0
        self._ahead_s = 0.0
        self._store: CrashableStore | None = None
        self.dependencies: Dependencies | None = None
        self._restart_at = 0.0
        """The time before which no process is started after one that has ended."""

    # Processes

    def start(self) -> None:
        """Start a process."""
        process = Process(f"{self.name} {len(self.processes)}")
        self.processes.append(process)
        self._stopping = self._around.loop.create_future()
        self._answering = {}
        self._connect()
        self.context = copy_context()
        self.context.run(RUNNING.set, process)
        _ = self._around.loop.create_task(self._run(process), context=self.context)

    @property
    def process(self) -> Process:
        """The present process, or the last one."""
        return self.processes[-1]

    def now_ms(self) -> int:
        """Return the time of day by the clock of its machine, in milliseconds since 1970."""
        return FIRST_MS + round((self._around.loop.time() + self._ahead_s) * 1000)

    async def _run(self, process: Process) -> None:
        try:
            await self._serve()
        except Exception as error:  # noqa: BLE001  # whatever it is, the script has found it
            self._around.errors.append(f"{self.name}: {error!r}")
        self._start_later(process)

    async def _serve(self) -> None:
        """Run until an error or a signal to stop, in the order of `services.query.service.serve`."""
        declared, stopping = self._around.state, self._stopping
        states = await self._starting.states({declared.name: declared}, stopping.done)
        if states is None:
            return
        state = states[declared.name]
        self._store = store = CrashableStore(self._folder, state, f"boot {self._boots}")
        tasks = [asyncio.ensure_future(work) for work in self._build(state, store)]
        await asyncio.wait([*tasks, self._stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:  # the cluster first: the others take over
            task.cancel()
            await asyncio.wait([task])
            error = None if task.cancelled() else task.exception()
            if error is not None and not is_restart(error):
                self._around.errors.append(f"{self.name}: {causes(error)}")
        self._end()
        for task in list(self._answering):
            task.cancel()
            await asyncio.wait([task])
        store.close()

    def _build(self, state: NamedState, store: Store) -> list[Coroutine[Any, Any, None]]:
        """Build the parts below HTTP as the service does; return what they run, in the order in which they stop."""
        around, settings = self._around, self._settings
        broker = around.broker
        states, stores = {state.name: state}, {state.name: store}
        kafka = {name: ModelKafka(broker, one, batch=around.batch) for name, one in self._connections.items()}
        listeners = ChangeListeners()
        retention = TombstoneRetention({state.name: around.retention_ms}, self.now_ms)
        admin = MetadataAdmin(broker, self._connections["admin"], self.metadata)
        ingestion = KafkaIngestion(kafka["ingest"], admin, states, stores, listeners, retention=retention)
        me = InstanceIdentity(self.name, f"http://{self.name}", f"{self.name} {self._folders}", len(self.processes))
        dependencies = InstanceDependencies(states, ingestion, stores, self.now_ms)
        cluster = build_cluster(settings, around.suite, me, dependencies, kafka["cluster"], now=around.loop.time)
        listeners.on_restarted.append(cluster.restarted)
        misplaced = ingestion.misplaced.counts
        found = Dependencies(
            settings, states, stores, cluster, Counts(CATALOGUE), self.now_ms, around.loop.time, misplaced
        )
        self.cluster, self.dependencies, self.ingestion = cluster, found, ingestion
        self.handlers = Handlers(found, InstancePeers(around.requests, self.name))
        self.push = PushService(found, around.limits, partial(InstanceConnections, around.requests))
        listeners.on_changed += [self.handlers.waiters.changed, self.push.changed]
        listeners.on_restarted.append(self.push.restarted)
        closer = self._window_closer(state, cluster, store, admin)
        watch = watch_partition_counts([state], admin)
        return [cluster.run(), self.push.run(), closer.run(), watch, ingestion.run()]

    def _window_closer(self, state: NamedState, cluster: Cluster, store: Store, admin: Admin) -> WindowCloser:
        states = [state] if state.window is not None and state.expires_by_clock else []
        progress = JobProgress(admin, state.topic)
        return WindowCloser(
            states, {state.name: store}, lambda one: progress.read(range(one.partitions)) or {}, cluster.has_read
        )

    # Faults

    def kill(self, down_s: float, *, loses: str = "") -> None:
        """Kill the process, and start another one later. It `loses` the "folder", what is "unsynced", or nothing."""
        if self._store is not None:
            if loses == "unsynced":
                self._store.lose_unsynced()
            self._store.abandon()
        if loses == "unsynced":
            self._boots += 1
        if loses == "folder":
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folders += 1
        for socket in self.sockets:
            socket.end(loses=True)
        if not self.process.is_killed:
            self._around.loop.kill_process(self.process)
            self._restart_at = self._around.loop.time() + down_s
            self._start_later(self.process)
        self._end()

    def stop(self, down_s: float) -> None:
        """Ask the process to stop, as SIGTERM does, and start another one when it has ended."""
        self._restart_at = self._around.loop.time() + down_s
        if not self._stopping.done():
            self._stopping.set_result(None)

    def freeze(self) -> None:
        """Run none of its code until it is thawed."""
        self._around.loop.stop_process(self.process)

    def thaw(self, process: Process, *, requests_first: bool) -> None:
        """Go on with a process that was frozen; perhaps with the requests that came meanwhile before all else."""
        if process.is_killed:
            return
        if requests_first:
            process.waiting.sort(key=lambda handle: handle.callback != self.receive)
        self._around.loop.resume_process(process)

    def cut(self, client: str, by: int) -> None:
        """Cut the connection of a client to the broker, or with -1 restore it."""
        for name in CLIENTS[1:] if client == "all" else [client]:
            self._cuts[name] += by
        self._cut_at = self._around.loop.time()
        self._connect()

    def lose_broker(self, *, is_away: bool) -> None:
        """Note that the broker is away, or back."""
        self._is_broker_away = is_away
        self._connect()

    @property
    def _is_cut_off_alone(self) -> bool:
        """Whether it believes to be the only instance, and the network has cut it off: the one documented exception."""
        assert self.cluster is not None
        is_cut = self._cuts["cluster"] > 0 or self._around.loop.time() - self._cut_at < RECOVERED_S
        return is_cut and not self.cluster.instance.lease_table.membership.peers()

    def has_replica(self, partition: StatePartition, end: int) -> bool:
        """Return whether it has read the partition up to this end."""
        assert self.ingestion is not None
        progress = self.ingestion.progress(partition)
        return progress is not None and progress.position >= end

    def stores_what_it_does_not_read(self) -> bool:
        """Return whether its store has a partition that it does not read: it cannot notice that the topic is empty."""
        if self._store is None or self.ingestion is None or self.dependencies is None:
            return True
        (state,) = self.dependencies.states.values()
        partitions = [StatePartition(state.name, number) for number in range(state.partitions)]
        stored = [one for one in partitions if self._store.position(one.number) is not None]
        return any(self.ingestion.progress(one) is None for one in stored)

    def answers_for(self, partition: StatePartition) -> bool:
        """Return whether it answers for the partition now."""
        assert self.cluster is not None
        return self.cluster.partition_status(*partition).role in ANSWERING_ROLES

    def step_clock(self, seconds: float) -> None:
        """Set the clock of its machine ahead, or back."""
        self._ahead_s += seconds

    def close(self) -> None:
        """Close what is open, at the end of the simulation."""
        self._around.loop.kill_process(self.process)
        if self._store is not None:
            self._store.abandon()
        self._end()

    # Requests

    def receive(self, request: Request, answer: asyncio.Future[Reply | None]) -> None:
        """Answer a request, in its process."""
        if self.handlers is None:
            settle(answer, None)
        elif isinstance(found := self.handlers.answer(request), Reply):
            self._settle(answer, found)
        else:
            task = self._around.loop.create_task(self._answer_later(answer, found))
            self._answering[task] = None
            task.add_done_callback(self._answering.pop)

    async def _answer_later(self, answer: asyncio.Future[Reply | None], found: Coroutine[Any, Any, Reply]) -> None:
        try:
            self._settle(answer, await found)
        except asyncio.CancelledError:  # the process ends
            settle(answer, None)
            raise

    def _settle(self, answer: asyncio.Future[Reply | None], found: Reply) -> None:
        if found.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self._around.errors.append(f"{self.name}: a request failed")
        settle(answer, None if self.cluster is None or self._is_cut_off_alone else found)

    def accept(self, socket: Socket, is_of_instance: bool, headers: Mapping[str, str]) -> None:  # noqa: FBT001  # an argument of a callback
        """Serve a WebSocket in its process."""
        if self.push is None or not self._has_layout(headers):
            socket.end()
        else:
            _ = self._around.loop.create_task(self._watch(self.push, socket, relays=is_of_instance))

    def _has_layout(self, headers: Mapping[str, str]) -> bool:
        """Return whether it places keys by the same numbers of partitions as the sender."""
        assert self.dependencies is not None
        with suppress(ProblemError):
            require_same_layout(headers, self.dependencies.states)
            return True
        return False

    async def _watch(self, push: PushService, socket: Socket, *, relays: bool) -> None:
        """Serve a WebSocket, as `WebSockets.watch` does."""
        assert self.dependencies is not None
        with push.stream(PEER if relays else ANONYMOUS, relays=relays) as stream, suppress(ConnectionError):
            socket.open()
            meter = RateMeter("", 0.0, self._around.loop.time)
            connection = WatchConnection(self.dependencies, push, stream, meter, relays=relays)
            await connection.serve(socket, socket)

    def _connect(self) -> None:
        for name, connection in self._connections.items():
            connection.is_up = not (self._cuts[name] or self._is_broker_away)
        self._starting.network.is_up = self._connections["admin"].is_up

    def _end(self) -> None:
        self._store = self.handlers = self.cluster = self.push = None
        for socket in self.sockets:
            socket.end()
        self.sockets.clear()

    def _start_later(self, ended: Process) -> None:
        loop, again = self._around.loop, partial(self._start_after, ended)
        at = max(self._restart_at, loop.time() + RESTART_S * (not ended.is_killed))
        loop.call_at(at, again, context=Context())  # the simulation starts it

    def _start_after(self, ended: Process) -> None:
        if self.process is ended:
            self.start()


def is_restart(error: BaseException) -> bool:
    """Return whether an error only asks to start the process again, for another number of partitions."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_restart, error.exceptions))
    return isinstance(error, PartitionsChangedError)


def causes(error: BaseException) -> str:
    """Return the errors of a group, or the error."""
    if isinstance(error, BaseExceptionGroup):
        return ", ".join(causes(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
