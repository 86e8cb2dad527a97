"""One Spark session for the job's expressions and for jobs that are not killed; topics and a running job."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from spark_app.session import CONF, LOCAL_FILES
from tests import everything
from tests.spark_app.hosted import HostedJob
from tests.spark_app.pair import pair
from tests.spark_app.running import CHECKOUT, Topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.services.broker.embedded import EmbeddedBroker


SLOTS = 8
"""The tasks of a query of two topics with two partitions."""
TWO_TASKS = dict.fromkeys(("spark.default.parallelism", "spark.sql.shuffle.partitions"), 2)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Give a session with the job's settings."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = ":".join(str(jar) for jar in sorted((CHECKOUT / ".stateloop/jars/spark").glob("*.jar")))
    builder = SparkSession.Builder().master(f"local[{SLOTS}]").config(map=CONF | LOCAL_FILES | TWO_TASKS)
    builder = builder.config("spark.driver.extraClassPath", jars).config("spark.driver.memory", "1g")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
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
def job(spark: SparkSession, topics: Topics, tmp_path: Path) -> Iterator[HostedJob]:
    """The running job of the application with every reducer."""
    running = HostedJob(spark, topics.kafka, tmp_path, everything.application())
    yield running.start()
    running.stop()


@pytest.fixture
def little_job(spark: SparkSession, topics: Topics, tmp_path: Path) -> Iterator[HostedJob]:
    """The running job of the application with few reducers."""
    running = HostedJob(spark, topics.kafka, tmp_path, everything.application(everything.Little))
    yield running.start()
    running.stop()


@pytest.fixture
def now_topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topics of this test, stamped by the broker, as in production."""
    monkeypatch.setenv("EVERYTHING_PREFIX", topics_prefix)
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    return Topics(broker.bootstrap, everything.application())
