"""The job's metrics, of contracts/metrics/job.py, from Spark's progress of each batch."""

import json
import time
from collections import Counter as Counts
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from pyspark.sql.streaming.listener import SourceProgress, StateOperatorProgress, StreamingQueryProgress

from contracts.metrics import Metric
from contracts.metrics import job as names
from services.runtime.monitoring import process_registry
from spark_app.query.observations import count_dead_letters, count_decoded, count_failures, count_filtered
from spark_app.topics.offsets import Positions

MARGIN = timedelta(minutes=1)
"""The maximum time that a batch takes beyond its length, for its start and its end."""
UNKNOWN = -1
"""Spark's value of an unknown figure."""


class Families(NamedTuple):
    """The metrics of the catalogue, of all applications."""

    counters: dict[Metric, Counter]
    gauges: dict[Metric, Gauge]


class JobMetrics:
    """The metrics of the job, and its health: the health of the queries of its applications."""

    def __init__(self) -> None:
        self._registry = process_registry()
        self._families = Families(
            {metric: _counter(metric, self._registry) for metric in names.CATALOGUE if metric.kind == "counter"},
            {metric: _gauge(metric, self._registry) for metric in names.CATALOGUE if metric.kind == "gauge"},
        )
        self._queries: list[QueryMetrics] = []

    def query(  # noqa: PLR0913  # two arguments are clocks
        self,
        application: str,
        batch: timedelta,
        longest: timedelta,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        *,
        scans: int = 1,
    ) -> "QueryMetrics":
        """Add an application, and return the metrics of its query.

        A batch lasts `longest` at most, and reads each record `scans` times.
        """
        self._queries.append(QueryMetrics(self._families, application, batch, longest, clock, now, scans))
        return self._queries[-1]

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format. Java, another process, is not included."""
        return generate_latest(self._registry)

    def unhealthy(self) -> str | None:
        """Return why a restart is necessary, with the applications that need it."""
        return "; ".join(why for query in self._queries if (why := query.unhealthy())) or None

    def unready(self) -> str | None:
        """Return which applications do not give a snapshot for each record now, and why."""
        return "; ".join(why for query in self._queries if (why := query.unready())) or None


class QueryMetrics:
    """The metrics of one application's query, and the time of its last progress. One thread writes, any thread reads.

    `batch` is the length of a batch; `clock` is monotonic, in seconds, and `now` is the time since 1970.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # two arguments are clocks
        self,
        families: Families,
        application: str,
        batch: timedelta,
        longest: timedelta,
        clock: Callable[[], float],
        now: Callable[[], float],
        scans: int,
    ) -> None:
        self._scans = scans
        self._families = families
        self._application = application
        self._batch_s = batch.total_seconds()
        self._longest_s = longest.total_seconds()
        self._clock = clock
        self._now = now
        self._since = clock()
        self._running = False
        self._has_committed = False
        self._catching_up = 0
        self._gave_up: str | None = None
        self._republishing = False
        for metric, family in (families.counters | families.gauges).items():
            if len(metric.labels) == 1:
                family.labels(application)  # so that it is there from the beginning, as 0

    def unhealthy(self) -> str | None:
        """Return why a restart is necessary: the query started or committed a batch too long ago.

        A micro-batch that catches up takes as long as its backlog demands, and one that publishes all windows as long
        as the size of the state. An application that has given up needs the remedy that its error names, not a restart,
        which would stop the others.
        """
        silent = self._clock() - self._since
        is_catching_up = self._catching_up or self._republishing
        if is_catching_up or self._gave_up or silent <= self._longest_s + MARGIN.total_seconds():
            return None
        return f"{self._application}: no batch was committed for {silent:.0f} s, and one lasts {self._longest_s:g} s"

    def unready(self) -> str | None:
        """Return why its records give no snapshots now; None while the query runs and has caught up."""
        if self._gave_up:
            return f"{self._application} gave up: {self._gave_up}"
        if self._catching_up:
            return f"{self._application} catches up with {self._catching_up} records before it goes live"
        if self._republishing:
            return f"{self._application} publishes each window of its state before it goes live"
        return None if self._running else f"the query of {self._application} does not run yet"

    def about(self, state: str, checkpoint: str) -> None:
        """Set the labels of the query: its state and its checkpoint."""
        self._set(names.ABOUT, 1, state, checkpoint)

    def catching_up(self, records: int) -> None:
        """Record that the next run reads a backlog of `records` records, and publishes when it has read all."""
        self._republishing = False
        self._set_backlog(records)

    def republishing(self) -> None:
        """Record that the next run publishes each window of the state."""
        self._republishing = True

    def live(self) -> None:
        """Record that the next run reads records as they come."""
        self._republishing = False
        self._set_backlog(0)

    def _set_backlog(self, records: int) -> None:
        self._catching_up = records
        self._set(names.CATCHING_UP, records)

    def starting(self) -> None:
        """Record that the query starts. This counts as progress, because a query that always fails gives up."""
        self._since = self._clock()
        self._set_given_up(None)
        self._add(names.STARTS, 1)

    def running(self) -> None:
        """Record that the query was started."""
        self._running = True

    def idle(self) -> None:
        """Record that the query waits for records. It has committed all that there was, once it has a batch."""
        self._since = self._clock()
        if self._has_committed:
            self._set(names.COMMITTED_AT, self._now())

    def lag(self, end_offsets: Positions, committed: Positions) -> None:
        """Record how many records of each topic are not in a committed batch."""
        behind: Counts[str] = Counts()
        for (topic, number), end in end_offsets.items():
            behind[topic] += max(0, end - committed.get((topic, number), end))
        for topic, records in behind.items():
            self._set(names.LAG, records, topic)

    def failed(self) -> None:
        """Record that the query failed."""
        self._running = False
        self._add(names.FAILURES, 1)

    def gave_up(self, why: str) -> None:
        """Record that the application has given up."""
        self._running = False
        self._set_given_up(why)

    def _set_given_up(self, why: str | None) -> None:
        self._gave_up = why
        self._set(names.GAVE_UP, int(why is not None))

    def records(self, rows: int) -> int:
        """Return the number of records, by the number of rows that Spark counts."""
        return rows // self._scans

    def batch(self, progress: StreamingQueryProgress) -> None:
        """Record a committed batch."""
        self._since = self._clock()
        self._has_committed = True
        self._add(names.BATCHES, 1)
        self._set(names.COMMITTED_AT, self._now())
        decoded = count_decoded(progress)
        self._add(names.WRITTEN, sum(decoded.values()) if decoded else progress.sink.numOutputRows)
        self._add(names.DECODED, decoded.get("decoded", 0))
        self._add(names.REFUSED, decoded.get("refused", 0))
        self._add(names.DEAD_LETTERS, count_dead_letters(progress))
        self._add(names.FILTERED, count_filtered(progress))
        self._add(names.PROCESSOR_FAILURES, count_failures(progress))
        self._times(progress.durationMs)
        if watermark := progress.eventTime.get("watermark"):
            self._set(names.WATERMARK, datetime.fromisoformat(watermark).timestamp())
        for source in progress.sources:
            self._source(source)
        for operator in progress.stateOperators:
            self._operator(operator)

    def _times(self, took: dict[str, int]) -> None:
        whole = took.get("triggerExecution", 0) / 1000
        self._set(names.BATCH_SECONDS, whole)
        self._set(names.PAUSE_SECONDS, max(0.0, whole - self._batch_s))
        for phase, milliseconds in took.items():
            self._set(names.PHASE_SECONDS, milliseconds / 1000, phase)

    def _source(self, source: SourceProgress) -> None:
        read, there = (_offsets(offsets) for offsets in (source.endOffset, source.latestOffset))
        for topic, partitions in read.items():
            self._add(names.RECORDS, self.records(source.numInputRows), topic)
            end_offsets = there.get(topic, partitions)
            behind = sum(max(0, end_offsets.get(number, offset) - offset) for number, offset in partitions.items())
            self._set(names.LAG, behind, topic)

    def _operator(self, operator: StateOperatorProgress) -> None:
        name, own = operator.operatorName, operator.customMetrics
        self._add(names.LATE, operator.numRowsDroppedByWatermark)
        self._add(names.COPIES, own.get("numDroppedDuplicateRows", 0))
        self._add(names.EXPIRED, operator.numRowsRemoved, name)
        self._add(names.STATE_UPDATED, operator.numRowsUpdated, name)
        self._set(names.STATE_BYTES, operator.memoryUsedBytes, name)
        self._set(names.STATE_COMMIT_SECONDS, operator.commitTimeMs / 1000, name)
        if seen := own.get("numRowsReadDuringEviction", 0):  # expiry visits every key, once there is a watermark
            self._set(names.STATE_KEYS, max(0, seen - operator.numRowsRemoved), name)
        for figure, value in own.items():
            if figure.startswith("rocksdb"):
                self._set(names.ROCKSDB, value, name, figure.removeprefix("rocksdb"))

    def _set(self, metric: Metric, value: float, *labels: str) -> None:
        self._families.gauges[metric].labels(self._application, *labels).set(value)

    def _add(self, metric: Metric, by: int, *labels: str) -> None:
        if by > UNKNOWN:
            self._families.counters[metric].labels(self._application, *labels).inc(by)


def _counter(metric: Metric, registry: CollectorRegistry) -> Counter:
    return Counter(metric.family, metric.help, metric.labels, registry=registry)


def _gauge(metric: Metric, registry: CollectorRegistry) -> Gauge:
    return Gauge(metric.family, metric.help, metric.labels, registry=registry)


def _offsets(offsets: str) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition; none if the source does not report them."""
    try:
        by_topic = json.loads(offsets)
    except ValueError:
        return {}
    return by_topic if isinstance(by_topic, dict) else {}
