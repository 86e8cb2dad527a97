"""The action that a redrive takes for a dead letter, as pure functions."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from contracts.records.record import Reason
from contracts.wire import REDRIVEN, Feedback

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application
    from contracts.wire import DeadLetter
    from services.tools.redrive.dead_letters import StoredDeadLetter

TICK = timedelta(microseconds=1)


class RedriveAction(StrEnum):
    """The action for one dead letter. The first two write a record; the third one makes a call."""

    SENT_AGAIN = "sent again"
    """The whole refused record is sent to its topic again."""
    REQUESTED_AGAIN = "requested again"
    """The slot that the failure closed is reopened, so that a worker repeats the request."""
    DELIVERED_AGAIN = "delivered again"
    """The event is sent to its webhook again, and was accepted."""
    REFUSED_AGAIN = "refused again by their webhook"
    NOT_ADDRESSED = "not delivered, as STATELOOP_APIS has no address of their webhook"
    NOT_RETAINED = "not retained in their topics"
    """The topic has deleted the record, or was recreated, and has another one at its place."""
    TOO_LARGE = "too large for their topics"
    """The broker does not take the record again: it was compressed better, or the limit was larger."""
    DUPLICATE = "refused more than once, and sent again for their first dead letter"
    """A record or an event has several dead letters."""
    EXPIRED = "of expired windows"
    """The job would refuse an answer as late."""
    NOT_REDRIVABLE = "not redrivable"
    """The record was empty, or it is not one of events, of feedback, of a raw source, or of alerts with a webhook.

    Or the dead letter of a failed request names no request: no worker has written it.
    """
    UNREADABLE = "unreadable"


def action_for(application: Application, found: StoredDeadLetter, now: datetime) -> RedriveAction:
    """Return the action for a dead letter, by its content alone."""
    dead_letter = found.dead_letter
    if dead_letter is None:
        return RedriveAction.UNREADABLE
    if dead_letter.reason == Reason.ENRICHMENT_FAILED:
        return _action_for_failure(application, found, now)
    if dead_letter.reason == Reason.DELIVERY_FAILED:
        return _action_for_delivery(application, dead_letter)
    if dead_letter.reason == Reason.PROCESSOR_FAILED and application.deduplicate:
        return RedriveAction.NOT_REDRIVABLE  # the job would drop it as a copy
    topics, raw = application.topics, [source.topic for source in application.raw]
    if dead_letter.topic in (topics.events, topics.feedback, *raw) and dead_letter.reason != Reason.EMPTY:
        return RedriveAction.SENT_AGAIN
    return RedriveAction.NOT_REDRIVABLE


def reopening(application: Application, found: StoredDeadLetter, now: datetime) -> Feedback:
    """Return the feedback that reopens a slot: a failure of the same version that answers no inputs.

    It is later than the failure in the slot and replaces it, also if the clock of its worker was ahead. Any other
    answer wins over it: a result of the same version, and every answer of a later version. So a repetition has no
    effect. What the device has spent of its budget stays spent, until the period of the failure ends.
    Raises ValueError or OverflowError for a dead letter that does not name a request. Of a number that no record can
    have, the feedback raises TypeError when it is encoded. Workers write no such dead letters.
    """
    dead_letter, key = found.dead_letter, found.key
    if (
        dead_letter is None
        or key is None
        or dead_letter.first_seen is None
        or not dead_letter.enrichment
        or not dead_letter.version
    ):
        raise ValueError("this dead letter does not name a request")
    first_seen, failed_at, budget = dead_letter.first_seen, dead_letter.failed_at, application.budget
    is_over = budget and failed_at and budget.period(first_seen, failed_at) != budget.period(first_seen, now)
    return Feedback(
        device_id=key.decode(),
        first_seen=first_seen,
        enrichment=dead_letter.enrichment,
        epoch=dead_letter.epoch or 0,
        version=dead_letter.version,
        status="failure",
        ts=now if failed_at is None else max(now, failed_at + TICK),
        fingerprint=REDRIVEN,
        reason="to be requested again",
        spent=None if is_over else dead_letter.spent,
    )


def _action_for_failure(application: Application, stored: StoredDeadLetter, now: datetime) -> RedriveAction:
    try:
        request = reopening(application, stored, now)
        request.encode()
    except (ValueError, TypeError, OverflowError):
        return RedriveAction.NOT_REDRIVABLE
    if request.enrichment not in application.by_recorded_name:
        return RedriveAction.NOT_REDRIVABLE
    if not application.topics.replay and now - request.first_seen > application.kept_for:
        return RedriveAction.EXPIRED
    return RedriveAction.REQUESTED_AGAIN


def _action_for_delivery(application: Application, dead_letter: DeadLetter) -> RedriveAction:
    topics = {alerts.name: application.topics.derived(alerts.name) for alerts in application.alerts if alerts.webhook}
    is_known = dead_letter.enrichment in topics and dead_letter.topic == topics[dead_letter.enrichment]
    return RedriveAction.DELIVERED_AGAIN if is_known and dead_letter.idempotency_key else RedriveAction.NOT_REDRIVABLE
