"""Topics of a test, and a running job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import everything
from tests.spark_app.batches import SHORT
from tests.spark_app.hosted import HostedJob
from tests.spark_app.pair import pair
from tests.spark_app.running import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker


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
    running = HostedJob(spark, topics.kafka, tmp_path, everything.application(), SHORT)
    yield running.start()
    running.stop()


@pytest.fixture
def little_job(spark: SparkSession, topics: Topics, tmp_path: Path) -> Iterator[HostedJob]:
    """The running job of the application with few reducers."""
    running = HostedJob(spark, topics.kafka, tmp_path, everything.application(everything.Little), SHORT)
    yield running.start()
    running.stop()


@pytest.fixture
def now_topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topics of this test, stamped by the broker, as in production."""
    monkeypatch.setenv("EVERYTHING_PREFIX", topics_prefix)
    monkeypatch.setenv("EVERYTHING_REPLAY", "0")
    return Topics(broker.bootstrap, everything.application())
