"""The deliveries of a record of alerts, and their identity. `transitions` of the alerts' tests checks `changed`."""

from __future__ import annotations

from contracts.alerts.deliveries import deliveries, events
from contracts.wire.alert_record import AlertRecord
from tests.services.enrichment.alerted import crossing

OPENED, CLOSED = crossing("sensor-1", 1)


def test_an_alert_that_opens_or_closes_is_delivered() -> None:
    (opened,), (closed,) = deliveries("too_high", OPENED), deliveries("too_high", CLOSED)
    assert (opened.inputs["event"], closed.inputs["event"]) == ("opened", "closed")
    assert opened.inputs["id"] == closed.inputs["id"] == OPENED.alerts[0].id
    assert (closed.inputs["closed_by"], closed.version, closed.enrichment) == ("condition", 2, "too_high")
    assert "closed_at" not in opened.inputs


def test_a_record_delivers_only_the_alerts_that_it_has_changed() -> None:
    (other,) = crossing("sensor-1", 5)[0].alerts
    both = OPENED.model_copy(update={"alerts": (*OPENED.alerts, other), "changed": (other.id,)})
    assert [event.id for event in events("too_high", both)] == [other.id]
    pending = other.model_copy(update={"status": "pending", "opened_at": None})
    assert deliveries("too_high", both.model_copy(update={"alerts": (pending,), "changed": ()})) == []


def test_the_identity_is_that_of_alert_and_event_and_stays_over_releases() -> None:
    repeated = AlertRecord.model_validate_json(OPENED.encode()).model_copy(update={"offset": 99})
    (first,), (again,), (closed,) = (deliveries("too_high", record) for record in (OPENED, repeated, CLOSED))
    assert (first.fingerprint, first.identity) == (again.fingerprint, again.identity)
    assert first.fingerprint == "ad8b108e-0816-531b-b663-75351a91e9e3"
    others = [deliveries("too_high", record)[0] for device in ("sensor-2", "ü\r\n") for record in crossing(device, 1)]
    keys = [request.fingerprint for request in (first, closed, *others)]
    assert len(set(keys)) == len(keys) == 6
    assert all(key.isascii() and key.isprintable() for key in keys)
    assert len({request.coalescing_key for request in (first, closed)}) == 2
