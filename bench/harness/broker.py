"""A broker for the benchmark alone, on a port and in a folder of its own."""

import random
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.harness.errors import BrokerExitedError, last_line
from bench.harness.jobs import CHECKOUT
from bench.harness.measure import Site
from bench.harness.process import Group

PORTS = range(20_000, 29_000, 2)
"""Below those that outgoing connections get, so that no client takes the port by chance."""
READY_S = 90
ANSWER_S = 1.0
SESSION_S = 60
"""A busy machine delays the broker for seconds. No test kills it here, so it need not lose its partitions for that:
while it has none, nothing flows, which would count as the job's."""


@contextmanager
def broker(folder: Path) -> Iterator[Site]:
    """Run a broker on new data; gives where it is. Raises BrokerExitedError."""
    port, jars = _free_ports(), CHECKOUT / ".stateloop" / "jars"
    site = Site(f"127.0.0.1:{port}", folder, jars / "spark")
    data = folder / "broker"
    environment = {
        "STATELOOP_BROKER_DATA": str(data),
        "STATELOOP_BROKER_PORT": str(port),
        "STATELOOP_BROKER_SESSION": str(SESSION_S),
        "STATELOOP_JARS": str(jars),
    }
    group = Group([sys.executable, "-m", "services.tools.broker"], environment, site.log("broker"))
    try:
        _await(group, site)
        yield replace(site, pids=tuple(group.pids()))
    finally:
        group.stop()
        shutil.rmtree(data, ignore_errors=True)


def _await(group: Group, site: Site) -> None:
    deadline = time.monotonic() + READY_S
    client = AdminClient({"bootstrap.servers": site.boot, "log_level": 0, "reconnect.backoff.max.ms": 100})
    while time.monotonic() < deadline and not group.ended():
        with suppress(KafkaException):
            client.list_topics(timeout=ANSWER_S)
            return
    log = site.log("broker")
    raise BrokerExitedError(log, last_line(log.read_text(errors="replace")))


def _free_ports() -> int:
    """A free port, of which the next one is free too: the controller takes that."""
    candidates = random.sample(PORTS, len(PORTS))
    return next(port for port in candidates if _free(port) and _free(port + 1))


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
