"""The connections of an instance to others and to the broker, and what it learns there of numbers of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from services.query.ingest import with_partition_counts
from services.query.push.peer_connections import PeerConnections
from services.tools.topics.growth import METADATA_S
from tests.simulation.blocking import ModelCalls, ProcessTime
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.errors import RefusedError
from tests.simulation.kafka.network import Network
from tests.simulation.network import NO_POLLS, ProcessNetwork

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Mapping
    from random import Random

    from contracts.model.named_state import NamedState
    from services.query.dependencies import Dependencies
    from services.query.push.routing_table import RoutingTable
    from tests.simulation.instances.requests import Requests
    from tests.simulation.loop import SimulationLoop
    from tests.simulation.network import WatchedBroker

ADDRESS = "the broker"
NOTED_S = 0.1
LATEST_S = METADATA_S - 1.0
"""How far the metadata of a broker is behind: less than a growth waits."""


class Connection(Network):
    """The connection of a client, whose requests from a thread fail at once while the broker is away."""

    @override
    def require(self) -> None:
        if not self.is_up:
            raise RefusedError("_TRANSPORT")


class InstanceConnections(PeerConnections):
    """The connections of an instance to the others."""

    def __init__(
        self, requests: Requests, dependencies: Dependencies, routing: RoutingTable, flush: Callable[[], None]
    ) -> None:
        super().__init__(dependencies, routing, flush)
        self._requests = requests
        self._source = dependencies.settings.instance

    @override
    def connect(self, url: str) -> Any:
        return self._requests.connect(self._source, url, headers=self.headers)


class Metadata:
    """The numbers of partitions that the broker of an instance knows: while it is late, those of a while ago."""

    def __init__(self, broker: WatchedBroker, clock: Callable[[], float]) -> None:
        self._broker = broker
        self._clock = clock
        self._late = 0
        self._noted: list[tuple[float, Mapping[str, int]]] = []

    def delay(self, by: int) -> None:
        """Let it be late from now on, or with -1 end that."""
        self._late += by

    def note(self) -> None:
        """Note the numbers that there are now."""
        present = {name: len(topic.logs) for name, topic in self._broker.topics.by_name.items()}
        if not self._noted or self._noted[-1][1] != present:
            self._noted.append((self._clock(), present))

    def known(self, counts: Mapping[str, int]) -> Mapping[str, int]:
        """Return what it answers in place of the present numbers."""
        until = self._clock() - LATEST_S
        former = [present for at, present in self._noted if at <= until] if self._late else []
        return {name: min(count, former[-1].get(name, count)) for name, count in counts.items()} if former else counts


class MetadataAdmin(ModelAdmin):
    """An admin client of an instance. The numbers of partitions are those that its broker knows."""

    def __init__(self, broker: WatchedBroker, network: Network, metadata: Metadata) -> None:
        super().__init__(broker, network)
        self._metadata = metadata

    @override
    def partition_counts(self, topics: Collection[str] | None = None, within_s: float = 10.0) -> Mapping[str, int]:
        return self._metadata.known(super().partition_counts(topics, within_s))


class StartingClient:
    """Reads the numbers of partitions when a process starts, which blocks its thread, and not the event loop."""

    def __init__(self, loop: SimulationLoop, broker: WatchedBroker, random: Random, metadata: Metadata) -> None:
        self.network = ProcessNetwork(loop, random, broker, NO_POLLS)
        self._admin = MetadataAdmin(broker, self.network, metadata)

    def states(
        self, declared: Mapping[str, NamedState], is_stopping: Callable[[], bool]
    ) -> asyncio.Future[Mapping[str, NamedState] | None]:
        """Return the states with the present numbers; None when the process stops."""
        return ModelCalls(self.network).call(lambda: with_partition_counts(declared, self._admin, ADDRESS, is_stopping))


class MonotonicTime(ProcessTime):
    """The module `time` for a blocking call."""

    monotonic = ProcessTime.time
