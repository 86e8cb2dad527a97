"""The services that are measured: how each is started on one core, and queried."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.harness.cores import PINNED
from bench.harness.jobs import Job
from bench.query.generators import RedisBenchmark, Wrk
from bench.query.store_clients import HttpStoreClient, RedisStoreClient, StoreClient

if TYPE_CHECKING:
    from collections.abc import Callable

SERVICE = Job(
    name="stateloop",
    command=(*PINNED, sys.executable, "-m", "services.query"),
    environment={
        "STATELOOP_APPLICATION": "bench.query.application:app",
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_QUERY_DATA": "{data}",
        "STATELOOP_HTTP_PORT": "{port}",
        "STATELOOP_INSTANCE": "bench",
        "STATELOOP_GROUP": "{group}",
        "STATELOOP_RATE": "0",
    },
)


def service_of(name: str, application: str) -> Job:
    """The service of this application, which shares all cores with the other processes."""
    environment = SERVICE.environment | {"STATELOOP_APPLICATION": application}
    return Job(name, (sys.executable, "-m", "services.query"), environment)


REDIS = Job(name="redis", command=(*PINNED, sys.executable, "-m", "bench.query.redis", "{boot}", "{port}", "{data}"))
KSTREAMS = Job(
    name="kstreams",
    command=(
        *PINNED,
        "{java}",
        "-Xms1g",
        "-Xmx1g",
        "-Xmn700m",
        "-XX:+UseSerialGC",
        "-Djava.io.tmpdir={scratch}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        "{peers}/kstreams/classes:{peers}/kstreams/*",
        "KsQueries",
        "{boot}",
        "{group}",
        "{data}",
        "{port}",
    ),
    peer="kstreams",
)
"""Interactive queries of Kafka Streams; on one core, with a heap for queries: its states are outside."""


@dataclass(frozen=True)
class Server:
    """A service. Its store_client and its load take the port; the load, how many keys there are, too."""

    job: Job
    store_client: Callable[[int], StoreClient]
    load: Callable[[int, int], Wrk | RedisBenchmark]
    needs: tuple[str, ...]
    paced: bool
    """Whether its load generator can ask at a rate."""
    pushes: bool
    """Whether it pushes changes to subscribers."""


SERVERS = {
    SERVICE.name: Server(SERVICE, HttpStoreClient, Wrk, ("wrk", "cc"), paced=True, pushes=True),
    REDIS.name: Server(
        REDIS, RedisStoreClient, RedisBenchmark, ("redis-server", "redis-benchmark"), paced=False, pushes=False
    ),
    KSTREAMS.name: Server(KSTREAMS, HttpStoreClient, Wrk, ("wrk",), paced=True, pushes=False),
}
QUERIES = tuple(one.job for one in SERVERS.values())
"""The first is ours."""
