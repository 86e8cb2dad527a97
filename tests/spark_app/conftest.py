"""One Spark session for the tests of the job's expressions; topics and a running job for those of the query."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from spark_app.session import CONF
from tests import everything
from tests.spark_app.pair import pair
from tests.spark_app.running import Job, Topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.services.broker.embedded import EmbeddedBroker


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Give a session with the job's settings."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master("local[2]").config(map=CONF)
    session = builder.config("spark.sql.shuffle.partitions", 2).config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topics of this test, stamped by the producer."""
    monkeypatch.setenv("EVERYTHING_PREFIX", topics_prefix)
    return Topics(broker.bootstrap, everything.application())


@pytest.fixture
def pair_topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topics of this test, for the small application of `tests.spark_app.pair`."""
    monkeypatch.setenv("PAIR_PREFIX", topics_prefix)
    return Topics(broker.bootstrap, pair("ab"))


@pytest.fixture
def job(topics: Topics, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Job]:
    """The running job of the application that the test names."""
    name = getattr(request, "param", "app")
    environment = {"EVERYTHING_PREFIX": topics.names.prefix, "STATELOOP_HTTP_PORT": "0"}
    running = Job(topics.kafka, tmp_path, f"tests.everything:{name}", environment)
    yield running.start()
    running.stop()


@pytest.fixture
def now_topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topics of this test, stamped by the broker, as in production."""
    monkeypatch.setenv("EVERYTHING_PREFIX", topics_prefix)
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    return Topics(broker.bootstrap, everything.application())
