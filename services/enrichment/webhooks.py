"""Plans the deliveries of alerts to their webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from typing_extensions import override

from contracts.alerts.deliveries import deliveries
from contracts.metrics import worker as metrics
from contracts.wire.alert_record import AlertRecord
from services.enrichment.feedback import failed_delivery
from services.enrichment.planner import RequestPlanner

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application, Webhook
    from contracts.metrics.counts import Counts
    from contracts.planning.request import Request
    from contracts.records.record import Record
    from contracts.wire import DeadLetter
    from services.enrichment.calls.caller import Outcome
    from services.enrichment.partition_state import PartitionState


class DeliveryPlanner(RequestPlanner):
    """The deliveries of the alerts of this name. It reads their records, and writes nothing."""

    def __init__(self, application: Application, alerts: str, webhook: Webhook, counts: Counts) -> None:
        topics = application.topics
        super().__init__(
            (topics.derived(alerts), topics.dead_letters),
            {webhook.api: webhook.policy},
            {alerts: webhook.api},
        )
        self._alerts = alerts
        self._counts = counts

    @override
    def plan(self, state: PartitionState, record: Record, now: datetime) -> list[Request]:
        """See `RequestPlanner.plan`. An event that two records have is delivered once, in the order of the first."""
        planned: list[Request] = [
            *deliveries(self._alerts, AlertRecord.model_validate(orjson.loads(record.value or b"")))
        ]
        necessary = [request for request in planned if not state.has(request)]
        self._counts.add(metrics.SUPPRESSED, by=len(planned) - len(necessary))
        return necessary

    @override
    def replan(self, state: PartitionState, record: Record, now: datetime, api: str) -> list[Request]:
        """See `RequestPlanner.replan`. Another delivery of the record may have started before."""
        return self.plan(state, record, now)

    @override
    def encode(self, request: Request, outcome: Outcome, now: datetime) -> tuple[Outcome, None]:
        """See `RequestPlanner.encode`."""
        return outcome, None

    @override
    def dead_letter(self, record: Record, request: Request, outcome: Outcome, now: datetime) -> DeadLetter:
        """See `RequestPlanner.dead_letter`."""
        return failed_delivery(record, request, outcome, now)
