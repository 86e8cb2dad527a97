"""The deliveries that a record of alerts calls for, as a pure function."""

from dataclasses import dataclass
from datetime import datetime

from typing_extensions import override

from contracts.planning.request import Request
from contracts.wire.alert_record import AlertEvent, AlertRecord


@dataclass(frozen=True)
class DeliveryRequest(Request):
    """A request that delivers one event. Its fingerprint is the idempotency key, its input the event."""

    @property
    @override
    def coalescing_key(self) -> tuple[str, datetime, str]:
        """The window and the idempotency key, so no later delivery replaces it."""
        return self.device_id, self.first_seen, self.fingerprint


def deliveries(alerts: str, record: AlertRecord) -> list[DeliveryRequest]:
    """Return a delivery for each alert that this record has opened or closed. `alerts` is their name."""
    return [_delivery(event, record) for event in events(alerts, record)]


def delivery(alerts: str, record: AlertRecord, idempotency_key: str | None) -> DeliveryRequest | None:
    """Return the delivery of the event with this key; None if this record has no such event."""
    return next((request for request in deliveries(alerts, record) if request.fingerprint == idempotency_key), None)


def events(alerts: str, record: AlertRecord) -> list[AlertEvent]:
    """Return the events of the alerts of this record, in the order of the record."""
    return [
        AlertEvent(
            event="closed" if alert.status == "closed" else "opened",
            alerts=alerts,
            device_id=record.device_id,
            first_seen=record.first_seen,
            epoch=record.epoch,
            version=record.version,
            as_of=record.as_of,
            **alert.model_dump(exclude={"status"}),
        )
        for alert in record.alerts
        if alert.id in record.changed
    ]


def _delivery(event: AlertEvent, record: AlertRecord) -> DeliveryRequest:
    return DeliveryRequest(
        device_id=event.device_id,
        first_seen=event.first_seen,
        enrichment=event.alerts,
        fingerprint=event.idempotency_key,
        version=record.version,
        as_of=record.as_of,
        inputs=event.model_dump(mode="json", exclude_none=True),
        epoch=record.epoch,
    )
