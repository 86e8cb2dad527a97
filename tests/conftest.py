"""What integration tests share: real servers, names that no other test has, and the rules for running in parallel."""

from __future__ import annotations

import gc
import os
import shutil
import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.jvm import start_fast
from tests.services.sink.servers import PostgresqlServer, RedisServer, folder_for_servers
from tests.services.tools.broker.embedded import EmbeddedBroker, free_port_pair
from tests.shared import begin as begin_run
from tests.shared import end as end_run
from tests.shared_broker import shared_broker
from tests.shared_spark import shared_spark
from tests.spark_app.running import started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


# Deadlines and slow generation measure the machine: it is busy with other tests.
settings.register_profile("stateloop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("full", settings.get_profile("stateloop"), max_examples=400)
# A test that must fail has failed with its first example: none smaller is wanted.
settings.register_profile(
    "guards", settings.get_profile("stateloop"), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "stateloop"))

MEMORY_PER_WORKER = 3 << 30
"""A broker, a Spark driver and the processes of a test."""
LONG = {"kafka", "spark", "browser", "e2e", "slow"}
"""Markers of tests that take long; the more of them, the longer. They run first, so that none is left at the end."""
MARKERS = {"broker": "kafka", "spark": "spark", "browser": "browser"}
"""Fixtures, and the marker that a test has which uses one: `make test-unit` leaves these markers out."""


def pytest_xdist_auto_num_workers() -> int:
    """How many tests run at once: three for two cores, as far as the memory allows.

    Half of its time a test of the loop waits. With two for each core, all of them together take longer, for the batches
    of jobs that wait take the CPU, and one takes so long that it reaches its limit.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min((os.cpu_count() or 1) * 3 // 2, memory // MEMORY_PER_WORKER))


def pytest_configure(config: pytest.Config) -> None:
    """Begin the run, in the process that starts the others."""
    if not hasattr(config, "workerinput"):
        begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the processes of the run share, when all of them have ended."""
    if not hasattr(config, "workerinput"):
        end_run()


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests by their fixtures, and begin with those that take long."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for fixture in fixtures & MARKERS.keys():
            item.add_marker(MARKERS[fixture])
    items.sort(key=_order)


def pytest_collection_finish() -> None:
    """Exempt the modules and the collected tests from garbage collection: each full collection would visit them all."""
    gc.collect()
    gc.freeze()


def _order(item: pytest.Item) -> int:
    return -len({mark.name for mark in item.iter_markers()} & LONG)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """Give a real broker: that of the run, or one of their own to the tests of a module that kills it."""
    if not request.node.get_closest_marker("kills_broker"):
        yield shared_broker()
        return
    own = EmbeddedBroker(tmp_path_factory.mktemp("broker"), free_port_pair())
    own.start()
    yield own
    own.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Give a Redis that runs; a test that kills it starts it again."""
    if why := RedisServer.missing():
        pytest.skip(why)
    server = RedisServer(folder_for_servers())
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Give a PostgreSQL that runs; a test that kills it starts it again."""
    if why := PostgresqlServer.missing():
        pytest.skip(why)
    server = PostgresqlServer(folder_for_servers())
    server.initialise()
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture(scope="session", autouse=True)
def fast_spark() -> None:
    """Let the JVMs of Spark start fast."""
    start_fast()


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """Give a session with the job's settings: for expressions, and for the jobs and commands that no test kills."""
    return shared_spark()


@pytest.fixture(autouse=True)
def no_jobs_left() -> Iterator[None]:
    """End the jobs that a test has left running, as one that fails does."""
    yield
    while started:
        if not (job := started.pop()).ended():
            job.kill()


@pytest.fixture
def topics_prefix() -> str:
    """Give a prefix for topic and group names that no other test has."""
    return f"t{uuid.uuid4().hex[:12]}."
