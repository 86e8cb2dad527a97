"""The job's metrics, those of contracts/metrics/job.py, from Spark's progress of each batch."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest
from pyspark.sql.streaming.listener import SourceProgress, StateOperatorProgress, StreamingQueryProgress

from contracts.metrics import Metric
from contracts.metrics import job as names
from spark_app.filtered import count_filtered

MARGIN = timedelta(minutes=1)
"""How much longer than its length a batch may take, its start and its end included."""
UNKNOWN = -1
"""Spark's value of a figure that it does not know."""


class JobMetrics:
    """What the job counts, and when it last got on. Written by the driver's main thread, read by any.

    `batch` is the length of a batch; `clock` is monotonic, in seconds, and `now` is the time since 1970.
    """

    def __init__(self, batch: timedelta, clock: Callable[[], float], now: Callable[[], float]) -> None:
        self._batch_s = batch.total_seconds()
        self._clock = clock
        self._now = now
        self._since = clock()
        self._running = False
        self._catching_up = 0
        self._registry = CollectorRegistry()
        self._counters = {one: _counter(one, self._registry) for one in names.CATALOGUE if one.kind == "counter"}
        self._gauges = {one: _gauge(one, self._registry) for one in names.CATALOGUE if one.kind == "gauge"}
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """All figures, in Prometheus' text format. Java's CPU and memory are another process' and not among them."""
        return generate_latest(self._registry)

    def unhealthy(self) -> str | None:
        """Why a restart is called for: no batch was committed, nor the query started, for longer than one takes.

        A micro-batch that catches up takes as long as its backlog demands.
        """
        silent = self._clock() - self._since
        if self._catching_up or silent <= self._batch_s + MARGIN.total_seconds():
            return None
        return f"no batch was committed for {silent:.0f} s, and one lasts {self._batch_s:g} s"

    def unready(self) -> str | None:
        """Return why no record gives a snapshot at once; None while the query runs in real-time mode."""
        if self._catching_up:
            return f"the job catches up with {self._catching_up} records before it goes live"
        return None if self._running else "the query does not run yet"

    def about(self, application: str, state: str, checkpoint: str) -> None:
        """What the job is."""
        self._gauges[names.ABOUT].labels(application, state, checkpoint).set(1)

    def catching_up(self, records: int) -> None:
        """The next run reads a backlog of so many records, and publishes when it has read all."""
        self._set_backlog(records)

    def live(self) -> None:
        """The next run is in real-time mode."""
        self._set_backlog(0)

    def _set_backlog(self, records: int) -> None:
        self._catching_up = records
        self._gauges[names.CATCHING_UP].set(records)

    def starting(self) -> None:
        """The query is about to start. One that always fails ends the driver, so this may count as getting on."""
        self._since = self._clock()
        self._add(names.STARTS, 1)

    def running(self) -> None:
        """The query was started."""
        self._running = True

    def failed(self) -> None:
        """The query failed."""
        self._running = False
        self._add(names.FAILURES, 1)

    def batch(self, progress: StreamingQueryProgress) -> None:
        """A batch was committed."""
        self._since = self._clock()
        self._add(names.BATCHES, 1)
        self._gauges[names.COMMITTED_AT].set(self._now())
        self._add(names.WRITTEN, progress.sink.numOutputRows)
        self._add(names.FILTERED, count_filtered(progress))
        self._times(progress.durationMs)
        if watermark := progress.eventTime.get("watermark"):
            self._gauges[names.WATERMARK].set(datetime.fromisoformat(watermark).timestamp())
        for source in progress.sources:
            self._source(source)
        for operator in progress.stateOperators:
            self._operator(operator)

    def _times(self, took: dict[str, int]) -> None:
        whole = took.get("triggerExecution", 0) / 1000
        self._gauges[names.BATCH_SECONDS].set(whole)
        self._gauges[names.PAUSE_SECONDS].set(max(0.0, whole - self._batch_s))
        for phase, milliseconds in took.items():
            self._gauges[names.PHASE_SECONDS].labels(phase).set(milliseconds / 1000)

    def _source(self, source: SourceProgress) -> None:
        read, there = (_offsets(one) for one in (source.endOffset, source.latestOffset))
        for topic, partitions in read.items():
            self._counters[names.RECORDS].labels(topic).inc(source.numInputRows)
            ends = there.get(topic, partitions)
            behind = sum(max(0, ends.get(number, offset) - offset) for number, offset in partitions.items())
            self._gauges[names.LAG].labels(topic).set(behind)

    def _operator(self, operator: StateOperatorProgress) -> None:
        name, own = operator.operatorName, operator.customMetrics
        self._add(names.LATE, operator.numRowsDroppedByWatermark)
        self._add(names.COPIES, own.get("numDroppedDuplicateRows", 0))
        self._add(names.EXPIRED, operator.numRowsRemoved, name)
        self._add(names.STATE_UPDATED, operator.numRowsUpdated, name)
        self._gauges[names.STATE_BYTES].labels(name).set(operator.memoryUsedBytes)
        self._gauges[names.STATE_COMMIT_SECONDS].labels(name).set(operator.commitTimeMs / 1000)
        if seen := own.get("numRowsReadDuringEviction", 0):  # it looks at every key, once there is a watermark
            self._gauges[names.STATE_KEYS].labels(name).set(max(0, seen - operator.numRowsRemoved))
        for figure, value in own.items():
            if figure.startswith("rocksdb"):
                self._gauges[names.ROCKSDB].labels(name, figure.removeprefix("rocksdb")).set(value)

    def _add(self, metric: Metric, by: int, *labels: str) -> None:
        if by > UNKNOWN:
            (self._counters[metric].labels(*labels) if labels else self._counters[metric]).inc(by)


def _counter(metric: Metric, registry: CollectorRegistry) -> Counter:
    return Counter(metric.family, metric.help, metric.labels, registry=registry)


def _gauge(metric: Metric, registry: CollectorRegistry) -> Gauge:
    return Gauge(metric.family, metric.help, metric.labels, registry=registry)


def _offsets(offsets: str) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition; none when the source does not report them."""
    try:
        found = json.loads(offsets)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
