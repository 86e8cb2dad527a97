"""The fence, as Spark evaluates it on rows that are published."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_app.checkpoint import fence as fences
from spark_app.checkpoint.fence import Fence
from spark_app.checkpoint.lease import LEASE_S
from tests.spark_app.leasing import World, job
from tests.spark_app.running import until

pytestmark = pytest.mark.spark
ROWS = 3


@pytest.fixture
def fence(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fence]:
    monkeypatch.setattr(fences, "LOOK_MS", 50)
    installed = Fence(spark, "test")
    assert installed.is_complete
    yield installed
    context: Any = spark.sparkContext
    context._jvm.java.lang.System.clearProperty("stateloop.renewed.test")  # noqa: SLF001  # PySpark has no public way


def passed(spark: SparkSession, fence: Fence) -> int:
    """Return the number of rows that the fence lets through, in one task."""
    return spark.range(0, ROWS, 1, 1).where(fence.sql()).count()


def expire(spark: SparkSession) -> None:
    """Set the time of the last renewal to one after which the lease has ended."""
    context: Any = spark.sparkContext
    system = context._jvm.java.lang.System  # noqa: SLF001  # PySpark has no public way
    before = system.nanoTime() - round((LEASE_S + 1) * 1e9)
    system.setProperty("stateloop.renewed.test", str(before))


def test_rows_pass_while_the_lease_is_renewed(spark: SparkSession, fence: Fence) -> None:
    fence.renew(World().acquire(job("a")))
    assert passed(spark, fence) == ROWS


def test_rows_wait_where_the_renewal_took_longer_than_a_lease(
    spark: SparkSession, fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fences, "LOOKS", 2)
    world = World()
    lease = world.acquire(job("a"))
    overwrite = world.overwrite

    def overwrite_slowly(name: str, content: str) -> None:
        overwrite(name, content)
        world.now += LEASE_S

    world.overwrite = overwrite_slowly  # type: ignore[method-assign]
    fence.renew(lease)
    with pytest.raises(PySparkException, match="was not renewed"):
        passed(spark, fence)


def test_rows_pass_where_no_time_is_stored(spark: SparkSession, fence: Fence) -> None:
    assert passed(spark, fence) == ROWS


def test_no_row_passes_a_closed_fence(spark: SparkSession, fence: Fence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fences, "LOOKS", 2)
    lease = World().acquire(job("a"))
    fence.renew(lease)
    fence.close()
    with pytest.raises(PySparkException, match="was not renewed"):
        passed(spark, fence)
    fence.renew(lease)  # a renewal that was on its way
    with pytest.raises(PySparkException, match="was not renewed"):
        passed(spark, fence)


def test_a_row_after_the_lease_fails_the_query(
    spark: SparkSession, fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fences, "LOOKS", 20)
    expire(spark)
    began = time.monotonic()
    with pytest.raises(PySparkException, match="was not renewed"):
        passed(spark, fence)
    assert time.monotonic() - began >= fences.LOOKS * fences.LOOK_MS / 1000, "it looks for a renewal first"


def test_a_row_after_the_lease_waits_for_a_renewal(spark: SparkSession, fence: Fence) -> None:
    expire(spark)
    renewal, began = threading.Timer(2.0, fence.renew, [World().acquire(job("a"))]), time.monotonic()
    renewal.start()
    assert passed(spark, fence) == ROWS
    assert time.monotonic() - began >= 2.0, "it looks until then"
    renewal.join()


def test_a_query_whose_rows_wait_can_be_stopped(spark: SparkSession, fence: Fence) -> None:
    expire(spark)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load().where(fence.sql())
    query = rows.writeStream.format("noop").start()
    until(spark.sparkContext.statusTracker().getActiveJobsIds, "a batch runs")
    stopped_at = time.monotonic()
    query.stop()
    assert time.monotonic() - stopped_at < fences.LOOKS * fences.LOOK_MS / 1000
    assert not any(progress.numInputRows for progress in query.recentProgress)
