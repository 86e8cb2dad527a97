from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql.streaming.listener import StreamingQueryProgress

from contracts.metrics import job as names
from spark_app.run.metrics import MARGIN, JobMetrics, QueryMetrics
from tests.clock import Clock

BATCH = timedelta(minutes=5)
ENOUGH_S = (BATCH + MARGIN).total_seconds()


def progress_of(**changes: Any) -> StreamingQueryProgress:
    """Return the progress that Spark 4.3 reported of a batch, shortened."""
    progress: dict[str, Any] = {
        "id": "58231255-33b0-4981-96ab-2a202baa61d4",
        "runId": "a5b1e2a7-86e1-4588-bc0f-eb25e3117271",
        "name": "stateloop",
        "timestamp": "2026-11-21T21:31:34.791Z",
        "batchId": 7,
        "batchDuration": 300378,
        "numInputRows": 1250,
        "durationMs": {"addBatch": 300114, "queryPlanning": 195, "triggerExecution": 300378},
        "eventTime": {"watermark": "2026-01-01T10:44:00.000Z"},
        "stateOperators": [operator("StatefulStreamlineAggregate", 60, late=3), operator("dedupe", 1000, late=4)],
        "sources": [source("events", 1125, 590, 594), source("feedback", 125, 64, 64)],
        "sink": {"description": "kafka", "numOutputRows": 1000},
        "observedMetrics": {"filter": {"filtered": 40}, "sink": {"dead_letters": 5}},
    }
    return StreamingQueryProgress.fromJson(progress | changes)


def operator(name: str, keys: int, late: int) -> dict[str, Any]:
    own = {"numDroppedDuplicateRows": 250} if name == "dedupe" else {}
    return {
        "operatorName": name,
        "numRowsTotal": 0,
        "numRowsUpdated": keys,
        "numRowsRemoved": 10,
        "allUpdatesTimeMs": 0,
        "allRemovalsTimeMs": 61,
        "commitTimeMs": 40,
        "memoryUsedBytes": 2101440,
        "numRowsDroppedByWatermark": late,
        "numShufflePartitions": 2,
        "numStateStoreInstances": 2,
        "customMetrics": own | {"numRowsReadDuringEviction": keys + 10, "rocksdbSstFileSize": 77},
    }


def source(topic: str, rows: int, end: int, latest: int) -> dict[str, Any]:
    return {
        "description": f"KafkaV2[Subscribe[{topic}]]",
        "startOffset": None,
        "endOffset": {topic: {"0": end, "1": 531}},
        "latestOffset": {topic: {"0": latest, "1": 531}},
        "numInputRows": rows,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 0.0,
    }


@pytest.fixture
def clock() -> Clock:
    return Clock(50.0)


@pytest.fixture
def job() -> JobMetrics:
    return JobMetrics()


@pytest.fixture
def figures(job: JobMetrics, clock: Clock) -> QueryMetrics:
    return query(job, "flights", clock)


def query(job: JobMetrics, application: str, clock: Clock) -> QueryMetrics:
    return job.query(application, BATCH, BATCH, clock, lambda: 1_700_000_000.0)


def samples(job: JobMetrics, application: str = "flights") -> dict[tuple[str, ...], float]:
    """The values of an application by name and other labels, which are in the order of their names."""
    families = text_string_to_metric_families(job.text().decode())
    prefix = "stateloop_job_"
    every = (s for family in families for s in family.samples)
    labels = ((s.name, s.value, dict(s.labels)) for s in every)
    own = {
        (name, *others.values()): value
        for name, value, others in labels
        if others.pop("application", None) == application
    }
    return {(name.removeprefix(prefix), *labels): value for (name, *labels), value in own.items()}


def test_a_batch_is_reported_with_all_its_figures(figures: QueryMetrics, job: JobMetrics) -> None:
    figures.batch(progress_of())
    reported = samples(job)
    expected: dict[tuple[str, ...], float] = {
        ("batches_total",): 1,
        ("committed_at_seconds",): 1_700_000_000,
        ("records_total", "events"): 1125,
        ("records_total", "feedback"): 125,
        ("lag", "events"): 4,
        ("lag", "feedback"): 0,
        ("written_total",): 1000,
        ("copies_total",): 250,
        ("dead_letters_total",): 5,
        ("filtered_total",): 40,
        ("late_total",): 7,
        ("expired_total", "dedupe"): 10,
        ("batch_seconds",): 300.378,
        ("phase_seconds", "queryPlanning"): 0.195,
        ("watermark_seconds",): 1767264240,
        ("state_keys", "StatefulStreamlineAggregate"): 60,
        ("state_keys", "dedupe"): 1000,
        ("state_updated_total", "dedupe"): 1000,
        ("state_bytes", "dedupe"): 2101440,
        ("state_commit_seconds", "dedupe"): 0.04,
        ("rocksdb", "SstFileSize", "dedupe"): 77,
    }
    assert expected.items() <= reported.items()
    assert reported["pause_seconds",] == pytest.approx(0.378)


def test_counters_grow_from_batch_to_batch(figures: QueryMetrics, job: JobMetrics) -> None:
    figures.batch(progress_of())
    figures.batch(progress_of(batchId=8))
    reported = samples(job)
    assert (reported["batches_total",], reported["records_total", "events"], reported["late_total",]) == (2, 2250, 14)


def test_a_figure_that_spark_does_not_know_is_not_counted(figures: QueryMetrics, job: JobMetrics) -> None:
    unknown = source("events", 5, 9, 9) | {"latestOffset": None}
    sink = {"description": "kafka", "numOutputRows": -1}
    first = operator("dedupe", 3, late=0)
    first["customMetrics"]["numRowsReadDuringEviction"] = 0
    figures.batch(progress_of(sources=[unknown], sink=sink, eventTime={}, stateOperators=[first]))
    reported = samples(job)
    assert (reported["written_total",], reported["lag", "events"], reported["watermark_seconds",]) == (0, 0, 0)
    assert ("state_keys", "dedupe") not in reported, (
        "in the first batch there is no watermark, and nothing is looked at"
    )


def test_batch_shorter_than_it_may_last_has_no_pause(figures: QueryMetrics, job: JobMetrics) -> None:
    figures.batch(progress_of(durationMs={"triggerExecution": 299_000}))
    assert samples(job)["pause_seconds",] == 0


def test_end_that_was_requested_before_the_last_records_came_makes_no_negative_lag(
    figures: QueryMetrics, job: JobMetrics
) -> None:
    early = source("events", 5, end=600, latest=594)
    early["latestOffset"]["events"]["1"] = 540  # another partition's lag is not made up for
    figures.batch(progress_of(sources=[early]))
    assert samples(job)["lag", "events"] == 9


def test_partition_whose_end_is_not_reported_has_no_lag(figures: QueryMetrics, job: JobMetrics) -> None:
    added = source("events", 5, end=590, latest=594)
    added["endOffset"]["events"]["2"] = 7
    figures.batch(progress_of(sources=[added]))
    assert samples(job)["lag", "events"] == 4


def test_more_keys_that_went_than_were_looked_at_leave_none(figures: QueryMetrics, job: JobMetrics) -> None:
    emptied = operator("dedupe", keys=-5, late=0)
    figures.batch(progress_of(stateOperators=[emptied]))
    assert samples(job)["state_keys", "dedupe"] == 0


def test_starts_and_failures_are_counted(figures: QueryMetrics, job: JobMetrics) -> None:
    figures.starting()
    assert job.unready()
    figures.running()
    assert job.unready() is None
    figures.failed()
    assert job.unready()
    figures.starting()
    figures.about("Flight-0a1b", "/checkpoint")
    reported = samples(job)
    assert (reported["starts_total",], reported["failures_total",]) == (2, 1)
    assert reported["about", "/checkpoint", "Flight-0a1b"] == 1


def test_the_whole_catalogue_is_reported(job: JobMetrics) -> None:
    families = {family.name: family for family in text_string_to_metric_families(job.text().decode())}
    assert {metric.family: (metric.kind, metric.help) for metric in names.CATALOGUE}.items() <= {
        name: (family.type, family.documentation) for name, family in families.items()
    }.items()


def test_health_is_a_batch_committed_in_its_time(figures: QueryMetrics, job: JobMetrics, clock: Clock) -> None:
    figures.starting()
    clock.now += ENOUGH_S
    assert job.unhealthy() is None, "within its first batch"
    clock.now += 1
    assert job.unhealthy() == "flights: no batch was committed for 361 s, and one lasts 300 s"
    figures.batch(progress_of())
    assert job.unhealthy() is None
    clock.now += ENOUGH_S + 1
    assert job.unhealthy()
    figures.starting()
    assert job.unhealthy() is None, "started again: it is within a first batch"


def test_a_query_that_waits_for_records_is_healthy(figures: QueryMetrics, job: JobMetrics, clock: Clock) -> None:
    figures.starting()
    clock.now += ENOUGH_S
    figures.idle()
    clock.now += ENOUGH_S
    assert job.unhealthy() is None


def test_a_query_that_waits_for_records_has_committed_all_there_is(job: JobMetrics, clock: Clock) -> None:
    figures = job.query("flights", BATCH, BATCH, clock, lambda: clock.now)
    figures.idle()
    assert samples(job)["committed_at_seconds",] == 0, "there was no batch yet"
    figures.batch(progress_of())
    clock.now += ENOUGH_S
    figures.idle()
    assert samples(job)["committed_at_seconds",] == clock.now


def test_the_lag_is_that_of_the_end_offsets_that_were_looked_up(figures: QueryMetrics, job: JobMetrics) -> None:
    figures.batch(progress_of(sources=[source("events", 5, 594, 594)]))
    assert samples(job)["lag", "events"] == 0, "Spark reports the end offsets of the batch's start"
    figures.lag({("events", 0): 6_694, ("events", 1): 531}, {("events", 0): 594, ("events", 1): 540})
    assert samples(job)["lag", "events"] == 6_100


def test_a_record_that_is_read_twice_is_counted_once(job: JobMetrics, clock: Clock) -> None:
    figures = job.query("bills", BATCH, BATCH, clock, scans=2)
    figures.batch(progress_of())
    assert samples(job, "bills")["records_total", "events"] == 1125 // 2


def test_each_application_has_its_own_figures_and_health(figures: QueryMetrics, job: JobMetrics, clock: Clock) -> None:
    other = query(job, "departures", clock)
    for metrics_of_query in (figures, other):
        metrics_of_query.starting()
        metrics_of_query.running()
    figures.batch(progress_of())
    assert samples(job)["batches_total",] == 1
    assert samples(job, "departures")["batches_total",] == 0
    clock.now += ENOUGH_S + 1
    figures.batch(progress_of(batchId=8))
    assert job.unhealthy() == "departures: no batch was committed for 361 s, and one lasts 300 s"
    other.gave_up("its topic is missing")
    assert job.unhealthy() is None, "a restart would stop the other one"
    assert job.unready() == "departures gave up: its topic is missing"
    assert samples(job, "departures")["gave_up",] == 1
    other.starting()
    assert job.unready() == "the query of departures does not run yet"
    assert samples(job, "departures")["gave_up",] == 0


def test_a_job_that_publishes_each_window_is_healthy_for_as_long_as_that_takes(
    figures: QueryMetrics, job: JobMetrics, clock: Clock
) -> None:
    figures.republishing()
    figures.starting()
    figures.running()
    clock.now += 10 * BATCH.total_seconds() + 1_000
    assert (job.unhealthy(), job.unready()) == (None, "flights publishes each window of its state before it goes live")
    figures.live()
    assert job.unready() is None
    assert "no batch was committed" in (job.unhealthy() or "")
