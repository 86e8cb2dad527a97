"""The workers that are measured: how each is started, on one core, with up to 1,000 calls in flight."""

import sys

from bench.harness.cores import PINNED
from bench.harness.jobs import OPEN, Job

IN_FLIGHT = 1_000

WORKER = Job(
    name="stateloop",
    command=(*PINNED, sys.executable, "-m", "services.enrichment"),
    environment={
        "STATELOOP_APPLICATION": "bench.enrichment.application:{application}",
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_GROUP": "{group}",
        "STATELOOP_APIS": '{{"places": "{api}"}}',
        "STATELOOP_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
        "STATELOOP_IN_FLIGHT": str(IN_FLIGHT),
    },
)
FASTSTREAM = Job(
    name="faststream",
    command=(*PINNED, sys.executable, "-m", "bench.peers.faststream.worker"),
    environment={"BOOT": "{boot}", "GROUP": "{group}", "API": "{api}", "IN_FLIGHT": str(IN_FLIGHT)},
)
FLINK_ASYNC = Job(
    name="flink-async",
    command=(
        *PINNED,
        "{java}",
        "-Xms1g",
        "-Xmx1g",
        "-Djava.io.tmpdir={scratch}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        *OPEN,
        "-cp",
        "{peers}/flink/classes:{peers}/flink/*",
        "AsyncJob",
        "{boot}",
        "{group}",
        "{checkpoint}",
        "{api}",
        str(IN_FLIGHT),
    ),
    peer="flink",
)
WORKERS = (WORKER, FASTSTREAM, FLINK_ASYNC)
"""The first is ours."""
