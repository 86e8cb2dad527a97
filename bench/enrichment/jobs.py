"""The workers that are measured: how each is started, on one core, with up to 1,000 calls in flight."""

import sys

from bench.harness.jobs import FLINK, OURS, Job, jvm
from bench.harness.machine import PINNED

IN_FLIGHT = 1_000

WORKER = Job(
    OURS,
    (*PINNED, sys.executable, "-m", "services.enrichment"),
    {
        "STATELOOP_APPLICATION": "bench.enrichment.application:app",
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_GROUP": "{group}",
        "STATELOOP_APIS": '{{"places": "{api}"}}',
        "STATELOOP_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
        "STATELOOP_IN_FLIGHT": str(IN_FLIGHT),
    },
)
FASTSTREAM = Job(
    "faststream",
    (*PINNED, sys.executable, "-m", "bench.peers.faststream.worker"),
    {"BOOT": "{boot}", "GROUP": "{group}", "API": "{api}", "IN_FLIGHT": str(IN_FLIGHT)},
)
FLINK_ASYNC = Job(
    "flink-async",
    (*PINNED, *jvm(FLINK, "AsyncJob", "{boot}", "{group}", "{checkpoint}", "{api}", str(IN_FLIGHT), heap="1g")),
    peer=FLINK,
)
WORKERS = (WORKER, FASTSTREAM, FLINK_ASYNC)
