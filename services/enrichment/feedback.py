"""What a worker writes: feedback, and dead letters. Pure functions from what happened to records."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contracts.records.record import Reason
from contracts.wire import DeadLetter, Feedback

if TYPE_CHECKING:
    from contracts.planning.request import Request
    from services.enrichment.calls.caller import Outcome
    from services.enrichment.source import Record

HEAD = 1000
"""How much of a record's value a dead letter holds, in bytes."""
DETAIL = 500
"""How much it says of what happened, in characters."""


def feedback(request: Request, outcome: Outcome, now: datetime) -> Feedback:
    """The answer to a request. One may be answered twice, after a crash: any of its answers will do."""
    return Feedback(
        device_id=request.device_id,
        first_seen=request.first_seen,
        enrichment=request.enrichment,
        epoch=request.epoch,
        version=request.version,
        status=outcome.status,
        ts=now,
        fingerprint=request.fingerprint,
        reason=outcome.reason,
        spent=request.spent,
        result=None if outcome.result is None else {request.enrichment: outcome.result},
        traceparent=outcome.traceparent or request.traceparent,
    )


def encoded(request: Request, outcome: Outcome, now: datetime, largest: int) -> tuple[Outcome, bytes]:
    """The feedback's value, with the outcome that it tells: a result larger than a record may be is a failure."""
    value = feedback(request, outcome, now).encode()
    if len(value) <= largest:
        return outcome, value
    why = f"the result makes a record of {len(value)} bytes, and {largest} are allowed"
    failure = replace(outcome, status="failure", result=None, reason=why)
    return failure, feedback(request, failure, now).encode()


def undecodable(record: Record, topic: str, detail: str) -> DeadLetter:
    """A record of the snapshots topic that is no snapshot."""
    return _letter(record, topic, Reason.UNDECODABLE_SNAPSHOT, detail[:DETAIL], {})


def failed(record: Record, topic: str, request: Request, outcome: Outcome) -> DeadLetter:
    """A request that ended in a failure, with all that is needed to ask again."""
    facts = {
        "enrichment": request.enrichment,
        "first_seen": request.first_seen,
        "epoch": request.epoch,
        "version": request.version,
        "spent": request.spent,
        "attempts": outcome.attempts,
        "response": outcome.response,
    }
    return _letter(record, topic, Reason.ENRICHMENT_FAILED, f"{request.enrichment}: {outcome.reason}"[:DETAIL], facts)


def _letter(record: Record, topic: str, reason: Reason, detail: str, facts: dict[str, Any]) -> DeadLetter:
    return DeadLetter(
        reason=reason,
        detail=detail,
        topic=topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=datetime.fromtimestamp(max(record.timestamp, 0) / 1000, UTC),
        head=(record.value or b"")[:HEAD].decode(errors="replace"),
        **facts,
    )


def milliseconds(time: datetime) -> int:
    """A time as Kafka's timestamp."""
    return round(time.timestamp() * 1000)
