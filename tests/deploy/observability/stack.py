"""All parts of a stack with the metrics that they export, and what they do in a minute in which all is well."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from prometheus_client import generate_latest
from typing_extensions import override

from contracts.metrics import derive, sink, worker
from contracts.metrics.counts import Counts, LabelledCounts
from services.query.health import Health
from services.query.ingest.kafka_ingestion import IngestCounts
from services.runtime.monitoring import process_registry
from spark_app.run.metrics import JobMetrics
from tests.clock import Clock
from tests.deploy.observability.recording import Recording
from tests.services.query.in_memory import MemoryRouting, ScratchStore, a_state, dependencies_of
from tests.spark_app.run.test_metrics import operator, progress_of, source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

APPLICATION, ENRICHMENT, ALERTS, STATE = "flights", "weather", "delays", "flights"
BATCH = timedelta(minutes=5)
BATCH_MINUTES = 5
RECORDS = 600
"""Records that a part reads in a minute."""


class Disk(ScratchStore):
    """A store whose disk has the free space that a scenario sets."""

    free = 50_000_000_000

    @override
    def free_bytes(self) -> int:
        return self.free


class Stack:
    """The processes by the part that Prometheus scrapes. A scenario changes the fields, and adds to the counts."""

    def __init__(self, metrics: Collection[str]) -> None:
        self.recording = Recording(metrics)
        self.now = Clock()
        self.job, self.routing, self.disk = JobMetrics(), MemoryRouting(), Disk(a_state(STATE))
        self.query = self.job.query(APPLICATION, BATCH, BATCH, self.now, self.now)
        self.query.starting()
        self.worker, self.webhook = Counts(worker.CATALOGUE), Counts(worker.CATALOGUE)
        self.derive, self.sink = Counts(derive.CATALOGUE), Counts(sink.CATALOGUE)
        self.ingest = IngestCounts([STATE])
        dependencies = dependencies_of(a_state(STATE), stores={STATE: self.disk}, routing=self.routing)
        self.instance = Health(dependencies, self.ingest, lambda: True)
        self.commits, self.progress = True, dict[str, Any]()
        self.down, self.gone = set[str](), set[str]()
        self.restarted_s = 0
        self.volume_free = 1.0
        labelled = [
            ({"application": APPLICATION}, self.worker),
            ({"application": APPLICATION, "alerts": ALERTS}, self.webhook),
        ]
        self.processes: dict[str, tuple[str, Callable[[], bytes]]] = {
            "job": ("job", self.job.text),
            "enrichment-1": ("enrichment", _exporter(LabelledCounts(labelled))),
            "enrichment-2": (
                "enrichment",
                _exporter(LabelledCounts([({"application": APPLICATION}, Counts(worker.CATALOGUE))])),
            ),
            "derive": ("derive", _exporter(self.derive)),
            "query": ("query", self.instance.text),
            "sink": ("sink", _exporter(self.sink)),
        }

    @property
    def minute(self) -> int:
        """The minutes since the start."""
        return int(self.now.now // 60)

    def work(self) -> None:
        """Do what the parts do in a minute."""
        if self.commits and self.minute % BATCH_MINUTES == 0:
            self.query.live()
            self.query.batch(progress_of(**(self._batch() | self.progress)))
        for counts, metric, labels in (
            (self.worker, worker.SNAPSHOTS, ()),
            (self.derive, derive.SNAPSHOTS, (APPLICATION,)),
            (self.sink, sink.RECORDS, (STATE,)),
        ):
            counts.add(metric, *labels, by=RECORDS)
        self.ingest.records[STATE] += RECORDS

    def scrape(self) -> None:
        """Scrape all processes, and end the minute."""
        for instance, (part, text) in self.processes.items():
            if instance in self.down:
                self.recording.note("up", {"job": part, "instance": instance}, 0)
            elif instance not in self.gone:
                self.recording.scrape(part, instance, text().decode(), self.restarted_s)
        claim = {"persistentvolumeclaim": "checkpoint-stateloop-job-0"}
        self.recording.note("kubelet_volume_stats_available_bytes", claim, self.volume_free * 50e9)
        self.recording.note("kubelet_volume_stats_capacity_bytes", claim, 50e9)
        self.recording.next_minute()
        self.now.now += 60

    def _batch(self) -> dict[str, Any]:
        """A batch without late records, whose watermark is the present time."""
        watermark = datetime.fromtimestamp(self.now.now, UTC).isoformat()
        return {
            "eventTime": {"watermark": watermark},
            "stateOperators": [operator("dedupe", 1000, late=0)],
            "observedMetrics": {},
            "sources": [source("events", BATCH_MINUTES * RECORDS, 590, 594)],
        }


def _exporter(counts: Counts | LabelledCounts) -> Callable[[], bytes]:
    registry = process_registry(counts)
    return lambda: generate_latest(registry)
