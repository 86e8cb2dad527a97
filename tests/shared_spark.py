"""One JVM with Spark for all processes of a test run: each of them has a gateway of its own to it.

Spark compiles and loads for a minute of CPU until it is warm, so one warm JVM replaces one for each process. The
sessions of the processes share executors and settings, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from services.tools.broker.readiness import wait_until
from spark_app.run.session import session
from spark_app.settings import JobSettings
from tests.shared import running, shared_process

CHECKOUT = Path(__file__).parents[1]
SLOTS = 200
"""More than the tasks of all queries that run at once: a task in real-time mode keeps its slot."""
ARGUMENTS = "--conf spark.default.parallelism=2 --conf spark.sql.shuffle.partitions=2 pyspark-shell"
"""Of spark-submit, which PySpark starts; a query of the job sets its own number of shuffle partitions."""
MEMORY = "3g"
START_S = 300
LOOK_S = 2
GATEWAYS = "gateways.json"
WORKERS = "PYTEST_XDIST_WORKER_COUNT"
WORKER = "PYTEST_XDIST_WORKER"


def shared_spark() -> SparkSession:
    """Return a session of this process's own in the JVM of the run, with the settings of the job."""
    port, secret = shared_process("spark", _started)["gateways"][_worker()]
    with patch.dict(os.environ, {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    java_context = gateway.jvm.JavaSparkContext.fromSparkContext(
        gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    os.environ["PYSPARK_PYTHON"] = sys.executable
    context = SparkContext(
        master=java_context.master(), appName=java_context.appName(), gateway=gateway, jsc=java_context
    )
    return SparkSession(context).newSession()


def _worker() -> int:
    """Return the number of this process among those of pytest-xdist."""
    return int(os.environ.get(WORKER, "gw0").removeprefix("gw"))


def _started(folder: Path) -> dict[str, Any]:
    with (folder / "spark.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.shared_spark", str(folder)],
            cwd=CHECKOUT,
            env=os.environ | {"PYSPARK_SUBMIT_ARGS": ARGUMENTS},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    gateways = folder / GATEWAYS
    wait_until(lambda: process.poll() is not None or gateways.exists(), f"Spark ready, see {log.name}", START_S)
    assert gateways.exists(), (folder / "spark.log").read_text(encoding="utf-8")[-2000:]
    process.returncode = 0  # Popen warns of a process that still runs
    return {"pid": process.pid, "gateways": json.loads(gateways.read_text(encoding="utf-8"))}


def serve(folder: Path) -> None:
    """Start Spark with a gateway for each process of the run, and run until the tests have ended.

    The JVM ends with this process.
    """
    jars = CHECKOUT / ".stateloop/jars"
    settings = JobSettings(application="", kafka="", jars=jars, driver_memory=MEMORY, log_level="ERROR")
    context: Any = session(settings, SLOTS).sparkContext
    servers = [_gateway(context) for _ in range(int(os.environ.get(WORKERS, "1")))]
    written = folder / f"{GATEWAYS}.tmp"
    written.write_text(json.dumps(servers), encoding="utf-8")
    written.rename(folder / GATEWAYS)
    while running():
        time.sleep(LOOK_S)


def _gateway(context: Any) -> tuple[int, str]:
    """Start a gateway to the JVM; return its port and its secret."""
    server = context._jvm.org.apache.spark.api.python.Py4JServer(context._jsc.sc().conf())  # noqa: SLF001  # PySpark has no public way
    server.start()
    return server.getListeningPort(), server.secret()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
