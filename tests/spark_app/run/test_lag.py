"""The lag of a query that runs in micro-batches."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_app.errors import BrokerUnreachableError
from spark_app.run.lag import JobLag
from spark_app.run.metrics import JobMetrics
from tests.spark_app.run.test_metrics import samples

if TYPE_CHECKING:
    from spark_app.topics.offsets import Positions

BATCH = timedelta(seconds=10)


def test_records_that_came_after_the_start_of_a_batch_are_its_lag() -> None:
    job, ends = JobMetrics(), {("events", 0): 10, ("events", 1): 5}
    lag = JobLag(lambda: dict(ends), job.query("flights", BATCH, BATCH))
    lag.committed({("events", 0): 10, ("events", 1): 5})
    lag.measure()
    assert samples(job)["lag", "events"] == 0
    ends["events", 0] += 6_100
    lag.measure()
    assert samples(job)["lag", "events"] == 6_100
    lag.committed({("events", 0): 6_000})
    lag.measure()
    assert samples(job)["lag", "events"] == 110
    lag.is_measured = False
    ends["events", 0] += 1
    lag.measure()
    assert samples(job)["lag", "events"] == 110


def test_a_broker_that_is_away_leaves_the_lag_as_it_was() -> None:
    def away() -> Positions:
        raise BrokerUnreachableError("broker", "it is away")

    job = JobMetrics()
    JobLag(away, job.query("flights", BATCH, BATCH)).measure()
    assert ("lag", "events") not in samples(job)
