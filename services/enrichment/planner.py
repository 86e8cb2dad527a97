"""Decides what a worker does with the records of its topic: for enrichments, with snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from typing_extensions import override

from contracts.metrics import worker as metrics
from contracts.records.record import timestamp_ms
from contracts.wire import decode_snapshot
from services.enrichment.feedback import encode, failed_request
from services.enrichment.partition_state import Planned
from services.runtime.kafka.values import Output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from contracts import Application, Policy
    from contracts.metrics import Metric
    from contracts.metrics.counts import Counts
    from contracts.planning.request import Request
    from contracts.records.record import Record
    from contracts.wire import DeadLetter
    from services.enrichment.calls.caller import Outcome
    from services.enrichment.partition_state import PartitionState


class RequestPlanner(ABC):
    """Plans the requests of records, and encodes their outcomes.

    It reads `topic`, the first of the `topics` that must exist. `apis` has the policy of each API, and `api_of` the API
    of each request by `Request.enrichment`. `is_limited` is whether a budget counts the requests, and `can_expire`
    whether windows end for which there are requests.
    """

    def __init__(self, topics: tuple[str, ...], apis: Mapping[str, Policy], api_of: Mapping[str, str]) -> None:
        self.topic = topics[0]
        self.topics = topics
        self.apis = apis
        self.api_of = api_of
        self.is_limited = self.can_expire = False

    @abstractmethod
    def plan(self, state: PartitionState, record: Record, now: datetime) -> list[Request]:
        """Return the requests to start for a record. Raises ValueError for one that cannot be decoded."""

    @abstractmethod
    def replan(self, state: PartitionState, record: Record, now: datetime, api: str) -> list[Request]:
        """Return the requests of one API to start for a record that was deferred."""

    @abstractmethod
    def encode(self, request: Request, outcome: Outcome, now: datetime) -> tuple[Outcome, Output | None]:
        """Return the outcome, which may have become a failure, and what is to be written for it."""

    @abstractmethod
    def dead_letter(self, record: Record, request: Request, outcome: Outcome, now: datetime) -> DeadLetter:
        """Return the dead letter of a failure at a time, which its feedback has too."""


class EnrichmentPlanner(RequestPlanner):
    """The enrichments of an application. It reads snapshots, and writes feedback."""

    def __init__(self, application: Application, counts: Counts) -> None:
        topics = application.topics
        super().__init__(
            (topics.snapshots, topics.feedback, topics.dead_letters),
            application.apis,
            {name: enrichment.api for name, enrichment in application.by_name.items()},
        )
        self._application = application
        self._counts = counts
        self.is_limited, self.can_expire = application.limited, not topics.replay

    @override
    def plan(self, state: PartitionState, record: Record, now: datetime) -> list[Request]:
        """See `RequestPlanner.plan`."""
        snapshot = decode_snapshot(record.value or b"")
        is_known = state.has_seen(snapshot)
        if is_known:
            self._counts.add(metrics.OUTDATED)
            if not state.is_latest(snapshot):
                return []
        requests, suppressed, over_budget, expired, withdrawn = state.plan(self._application, snapshot, now)
        if withdrawn:
            self._counts.add(metrics.WITHDRAWN, by=withdrawn)
        if is_known:  # compaction may leave only this copy of a snapshot with queued or deferred requests
            api_of = self.api_of
            return [one for one in requests if state.has_queued(one) or state.may_have_lost(api_of[one.enrichment])]
        if suppressed or over_budget or expired:  # none, for most snapshots
            self._counts.add(metrics.SUPPRESSED, by=suppressed)
            self._count(metrics.BUDGET_STOPS, over_budget)
            self._count(metrics.EXPIRED, expired)
        for request in requests:
            if request.order > snapshot.order:
                self._counts.add(metrics.FORGED, request.enrichment)
        return requests

    @override
    def replan(self, state: PartitionState, record: Record, now: datetime, api: str) -> list[Request]:
        """See `RequestPlanner.replan`. The plan of a later version contains all requests that are still necessary."""
        snapshot = decode_snapshot(record.value or b"")
        is_superseded = state.is_superseded(snapshot)
        planned = Planned([], 0, []) if is_superseded else state.plan(self._application, snapshot, now)
        self._counts.add(metrics.WITHDRAWN, by=planned.withdrawn)
        for metric, dropped in ((metrics.BUDGET_STOPS, planned.over_budget), (metrics.EXPIRED, planned.expired)):
            self._count(metric, [request for request in dropped if self.api_of[request.enrichment] == api])
        return [request for request in planned.requests if self.api_of[request.enrichment] == api]

    @override
    def encode(self, request: Request, outcome: Outcome, now: datetime) -> tuple[Outcome, Output]:
        """See `RequestPlanner.encode`."""
        request = request.charged(self._application.budget, now)
        outcome, value = encode(request, outcome, now, self._application.largest_record)
        topic, key = self._application.topics.feedback, request.device_id.encode()
        return outcome, Output(topic, key, value, timestamp_ms=timestamp_ms(request.as_of))

    @override
    def dead_letter(self, record: Record, request: Request, outcome: Outcome, now: datetime) -> DeadLetter:
        """See `RequestPlanner.dead_letter`."""
        return failed_request(record, request.charged(self._application.budget, now), outcome, now)

    def _count(self, metric: Metric, requests: Sequence[Request]) -> None:
        for request in requests:
            self._counts.add(metric, request.enrichment)
