"""The services that are measured: how each is started on one core, and queried."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from bench.harness.jobs import KSTREAMS, OURS, Job, jvm
from bench.harness.machine import PINNED
from bench.query.generators import RedisBenchmark, Wrk
from bench.query.store_clients import HttpStoreClient, RedisStoreClient, StoreClient


@dataclass(frozen=True)
class Service(Job):
    """A service. Its store_client and its load take the port; the load, how many keys there are, too."""

    store_client: Callable[[int], StoreClient] = HttpStoreClient
    load: Callable[[int, int], Wrk | RedisBenchmark] = Wrk
    is_paced: bool = True
    """Whether its load generator can ask at a rate."""
    has_pages: bool = False
    """Whether it serves pages of keys, and sends the changes of a key to watchers, as the query service does."""


STATELOOP_SERVICE = Service(
    OURS,
    (*PINNED, sys.executable, "-m", "services.query"),
    {
        "STATELOOP_APPLICATION": "bench.query.application:app",
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_QUERY_DATA": "{data}",
        "STATELOOP_HTTP_PORT": "{port}",
        "STATELOOP_INSTANCE": "bench",
        "STATELOOP_GROUP": "{group}",
        "STATELOOP_RATE": "0",
    },
    programs=("wrk",),
    has_pages=True,
)
REDIS = Service(
    "redis",
    (*PINNED, sys.executable, "-m", "bench.query.redis", "{boot}", "{port}", "{data}"),
    programs=("redis-server", "redis-benchmark"),
    store_client=RedisStoreClient,
    load=RedisBenchmark,
    is_paced=False,
)
HEAP = ("-Xmn700m", "-XX:+UseSerialGC")
"""A heap for queries: the states of Kafka Streams are outside."""
KSTREAMS_QUERIES = Service(
    KSTREAMS,
    (*PINNED, *jvm(KSTREAMS, "KsQueries", "{boot}", "{group}", "{data}", "{port}", heap="1g", options=HEAP)),
    peer=KSTREAMS,
    programs=("wrk",),
)
"""Interactive queries of Kafka Streams."""
SERVICES = (STATELOOP_SERVICE, REDIS, KSTREAMS_QUERIES)
