"""The dependencies of a worker. `service` opens them for a process, a test passes fakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts import Application
    from contracts.metrics.counts import Counts
    from services.enrichment.calls.caller import Enricher
    from services.enrichment.deferred_queue import Reread
    from services.enrichment.dispatcher import Availability
    from services.enrichment.planner import RequestPlanner
    from services.enrichment.settings import EnrichmentSettings
    from services.runtime.kafka.interfaces import GroupConsumer, Producer
    from services.runtime.worker.newest_record import NewestRecord


@dataclass(frozen=True)
class WorkerDependencies:
    """The application, planner and settings of a worker, its connections to Kafka and to the APIs, and its clocks."""

    application: Application
    planner: RequestPlanner
    settings: EnrichmentSettings
    consumer: GroupConsumer
    reread: Reread
    newest: NewestRecord
    caller: Enricher
    availability: Availability
    producer: Producer
    counts: Counts
    now: Callable[[], datetime]
    clock: Callable[[], float]
