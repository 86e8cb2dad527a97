"""Builds the records that a worker writes: feedback and dead letters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from contracts.records.record import Reason, Record
from contracts.wire import LARGEST_HEAD, DeadLetter, Feedback
from contracts.wire.dead_letter import LARGEST_DETAIL

if TYPE_CHECKING:
    from datetime import datetime

    from contracts.planning.request import Request
    from services.enrichment.calls.caller import Outcome


def feedback(request: Request, outcome: Outcome, now: datetime) -> Feedback:
    """Return the feedback of a request. After a crash a request may be answered twice; each answer is valid."""
    return Feedback(
        device_id=request.device_id,
        first_seen=request.first_seen,
        enrichment=request.recorded_as,
        epoch=request.epoch,
        version=request.version,
        status=outcome.status,
        ts=now,
        fingerprint=request.fingerprint,
        reason=outcome.reason and outcome.reason[:LARGEST_DETAIL],
        spent=request.spent,
        result=None if outcome.result is None else {request.recorded_as: outcome.result},
        traceparent=outcome.traceparent or request.traceparent,
    )


def encode(request: Request, outcome: Outcome, now: datetime, largest: int) -> tuple[Outcome, bytes]:
    """Return the outcome and its encoded feedback. A result that exceeds the record size becomes a failure."""
    value = feedback(request, outcome, now).encode()
    if len(value) <= largest:
        return outcome, value
    why = f"the result makes a record of {len(value)} bytes, and {largest} are allowed"
    failure = replace(outcome, status="failure", result=None, reason=why)
    return failure, feedback(request, failure, now).encode()


def failed_request(record: Record, request: Request, outcome: Outcome, now: datetime) -> DeadLetter:
    """Return the dead letter of a failed request, with everything that a redrive needs."""
    detail = f"{request.enrichment}: {outcome.reason}"
    return DeadLetter.of(record, Reason.ENRICHMENT_FAILED, detail, **_facts(request, outcome, now))


def failed_delivery(record: Record, request: Request, outcome: Outcome, now: datetime) -> DeadLetter:
    """Return the dead letter of an event that was not delivered, with everything that a redrive needs."""
    detail = f"{outcome.reason}: {request.inputs['event']} {request.inputs['id']}"
    facts = _facts(request, outcome, now) | {"idempotency_key": request.fingerprint}
    return DeadLetter.of(record, Reason.DELIVERY_FAILED, detail, **facts)


def _facts(request: Request, outcome: Outcome, now: datetime) -> dict[str, Any]:
    return {
        "enrichment": request.recorded_as,
        "first_seen": request.first_seen,
        "epoch": request.epoch,
        "version": request.version,
        "spent": request.spent,
        "failed_at": now,
        "attempts": outcome.attempts,
        "response": outcome.response and outcome.response[:LARGEST_HEAD],
    }
