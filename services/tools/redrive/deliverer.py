"""Delivers events to their webhooks; in a dry run, it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts.planning.deliveries import DeliveryRequest
    from services.enrichment.redelivery import Redelivery


class WebhookDeliverer:
    """Delivers as a worker does, and reports in words why an event is refused again. Implements Deliverer."""

    def __init__(self, redelivery: Redelivery, report: Callable[[str], None]) -> None:
        self.has_address = redelivery.has_address
        self._redelivery = redelivery
        self._report = report

    def deliver(self, request: DeliveryRequest) -> bool:
        """See `Deliverer.deliver`. Raises a WorkerError for unusable secrets."""
        outcome = self._redelivery.deliver(request)
        if outcome.status != "failure":
            return True
        self._report(f"{request.inputs['event']} {request.inputs['id']} is refused again: {outcome.reason}")
        return False


class NoDeliverer:
    """That of a dry run. Implements Deliverer."""

    def __init__(self, redelivery: Redelivery) -> None:
        self.has_address = redelivery.has_address

    def deliver(self, _request: DeliveryRequest) -> bool:
        """Do nothing."""
        return True
