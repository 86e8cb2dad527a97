"""The action for each dead letter; a reopened slot loses nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Alerts, Application, Budget, FromKey, Raw
from contracts.planning.plan import plan
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Delta, Reason, Record, timestamp_ms
from contracts.wire import REDRIVEN, Answer, DeadLetter
from services.tools.redrive.action import RedriveAction, action_for, reopening
from services.tools.redrive.dead_letters import DeadLetterFilter, StoredDeadLetter
from tests.services.enrichment.alerted import LIMITS, WEBHOOK, above
from tests.services.enrichment.fleet import Car, Seen, app, owner, quote, street

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(minutes=1)
RAW = Raw("monitors", lambda _: {}, {"device_id": FromKey()})
LIVE = type(app)(
    name="live",
    event=Seen,
    state=Car,
    enrichments=(owner, quote, street),
    raw=(RAW,),
    tables=(LIMITS,),
    alerts=(Alerts("too_high", LIMITS, above, webhook=WEBHOOK), Alerts("silent", LIMITS, above)),
)
"""As the fleet, but no replay: windows expire. It decodes raw records, and delivers one of its two kinds of alerts."""
ACTIONS = {
    Reason.EMPTY: RedriveAction.NOT_REDRIVABLE,
    Reason.OVERSIZED: RedriveAction.SENT_AGAIN,
    Reason.NOT_UTF8: RedriveAction.SENT_AGAIN,
    Reason.MALFORMED: RedriveAction.SENT_AGAIN,
    Reason.INVALID_FIELD: RedriveAction.SENT_AGAIN,
    Reason.WRONG_KEY: RedriveAction.SENT_AGAIN,
    Reason.INCREDIBLE_TIME: RedriveAction.SENT_AGAIN,
    Reason.LATE: RedriveAction.SENT_AGAIN,
    Reason.PROCESSOR_FAILED: RedriveAction.NOT_REDRIVABLE,
    Reason.UNDECODABLE: RedriveAction.SENT_AGAIN,
    Reason.LARGE_SNAPSHOT: RedriveAction.NOT_REDRIVABLE,
    Reason.UNDECODABLE_SNAPSHOT: RedriveAction.NOT_REDRIVABLE,
    Reason.ENRICHMENT_FAILED: RedriveAction.REQUESTED_AGAIN,
    Reason.DELIVERY_FAILED: RedriveAction.DELIVERED_AGAIN,
    Reason.INVALID_ROW: RedriveAction.NOT_REDRIVABLE,
    Reason.NOT_DERIVED: RedriveAction.NOT_REDRIVABLE,
    Reason.NOT_STORED: RedriveAction.NOT_REDRIVABLE,
}
"""The action for each reason, of a dead letter that its part writes."""
TOPICS = {
    Reason.UNDECODABLE: "monitors",
    Reason.LARGE_SNAPSHOT: "snapshots",
    Reason.UNDECODABLE_SNAPSHOT: "snapshots",
    Reason.ENRICHMENT_FAILED: "snapshots",
    Reason.DELIVERY_FAILED: "too_high",
    Reason.INVALID_ROW: "limits",
    Reason.NOT_DERIVED: "snapshots",
    Reason.NOT_STORED: "snapshots",
}
"""The topics of the refused records, where that is not the topic of events."""


def found(reason: Reason = Reason.ENRICHMENT_FAILED, **facts: object) -> StoredDeadLetter:
    given = {"topic": "snapshots", "partition": 0, "offset": 7, "timestamp": START, "reason": reason.value}
    failed: dict[str, object] = {}
    if reason is Reason.ENRICHMENT_FAILED:
        failed = {"enrichment": "owner", "first_seen": START, "version": 3}
    elif reason is Reason.DELIVERY_FAILED:
        failed = {"enrichment": "too_high", "topic": "too_high", "idempotency_key": "9f59e056"}
    return StoredDeadLetter(DeadLetter.model_validate(given | failed | facts), b"d1", LATER)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_one_action(reason: Reason) -> None:
    dead_letter = found(reason, topic=TOPICS.get(reason, "events"))
    assert action_for(LIVE, dead_letter, LATER) is ACTIONS[reason]


@given(
    reason=st.sampled_from(Reason),
    topic=st.sampled_from(["events", "feedback", "monitors", "snapshots", "too_high", "silent", "other"]),
    named=st.sampled_from([None, "", "owner", "too_high", "silent", "removed"]),
    idempotency_key=st.sampled_from([None, "", "9f59e056"]),
)
def test_only_a_failed_delivery_of_alerts_with_a_webhook_is_delivered(
    reason: Reason, topic: str, named: str | None, idempotency_key: str | None
) -> None:
    """And it is never sent to a topic."""
    taken = action_for(LIVE, found(reason, topic=topic, enrichment=named, idempotency_key=idempotency_key), LATER)
    is_delivery = reason is Reason.DELIVERY_FAILED and topic == named == "too_high" and bool(idempotency_key)
    assert (taken is RedriveAction.DELIVERED_AGAIN) == is_delivery
    assert is_delivery or reason is not Reason.DELIVERY_FAILED or taken is RedriveAction.NOT_REDRIVABLE


@pytest.mark.parametrize(
    ("dead_letter", "expected"),
    [
        (found(Reason.MALFORMED, topic="events"), RedriveAction.SENT_AGAIN),
        (found(Reason.INVALID_FIELD, topic="feedback"), RedriveAction.SENT_AGAIN),
        (found(Reason.UNDECODABLE, topic="monitors"), RedriveAction.SENT_AGAIN),
        (found(Reason.OVERSIZED, topic="monitors"), RedriveAction.SENT_AGAIN),
        (found(Reason.EMPTY, topic="monitors"), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.PROCESSOR_FAILED, topic="events"), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.EMPTY, topic="events"), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.LARGE_SNAPSHOT), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.UNDECODABLE_SNAPSHOT), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.MALFORMED, topic="somebody's"), RedriveAction.NOT_REDRIVABLE),
        (found(), RedriveAction.REQUESTED_AGAIN),
        (found(enrichment="removed"), RedriveAction.NOT_REDRIVABLE),
        (found(version=None), RedriveAction.NOT_REDRIVABLE),
        (found(first_seen=None), RedriveAction.NOT_REDRIVABLE),
        (replace(found(), key=None), RedriveAction.NOT_REDRIVABLE),
        (replace(found(), key=b""), RedriveAction.NOT_REDRIVABLE),
        (replace(found(), key=b"\xff"), RedriveAction.NOT_REDRIVABLE),
        (replace(found(), key=b"d" * 501), RedriveAction.NOT_REDRIVABLE),
        (found(version=-1), RedriveAction.NOT_REDRIVABLE),
        (found(spent=1 << 64), RedriveAction.NOT_REDRIVABLE),
        (found(failed_at="9999-12-31T23:59:59.999999Z"), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.DELIVERY_FAILED), RedriveAction.DELIVERED_AGAIN),
        (found(Reason.DELIVERY_FAILED, topic="snapshots"), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.DELIVERY_FAILED, idempotency_key=None), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.DELIVERY_FAILED, enrichment="silent", topic="silent"), RedriveAction.NOT_REDRIVABLE),
        (found(Reason.DELIVERY_FAILED, enrichment="removed", topic="removed"), RedriveAction.NOT_REDRIVABLE),
        (StoredDeadLetter(None, b"d1", START), RedriveAction.UNREADABLE),
    ],
)
def test_the_action_of_each_kind(dead_letter: StoredDeadLetter, expected: RedriveAction) -> None:
    assert action_for(LIVE, dead_letter, LATER) is expected


def test_nothing_is_redriven_for_an_expired_window_except_in_a_replay() -> None:
    over = START + Car.lifetime + Car.grace + timedelta(seconds=1)
    assert (action_for(LIVE, found(), over), action_for(app, found(), over)) == (
        RedriveAction.EXPIRED,
        RedriveAction.REQUESTED_AGAIN,
    )


@pytest.mark.parametrize(
    "dead_letter",
    [
        StoredDeadLetter(None, b"d1", LATER),
        replace(found(), key=None),
        found(first_seen=None),
        found(enrichment=None),
        found(version=None),
    ],
)
def test_a_dead_letter_that_names_no_request_reopens_nothing(dead_letter: StoredDeadLetter) -> None:
    with pytest.raises(ValueError, match="does not name a request"):
        reopening(app, dead_letter, LATER)


def test_dead_letters_are_chosen_by_reason_enrichment_and_time() -> None:
    failed, malformed = found(), found(Reason.MALFORMED, topic="events")
    unreadable = StoredDeadLetter(None, None, LATER)
    for choice, taken in (
        (DeadLetterFilter(), [failed, malformed, unreadable]),
        (DeadLetterFilter(reasons=frozenset({"malformed", "late"})), [malformed]),
        (DeadLetterFilter(enrichments=frozenset({"owner"})), [failed]),
        (DeadLetterFilter(enrichments=frozenset({"quote"})), []),
        (DeadLetterFilter(since=LATER), [failed, malformed, unreadable]),
        (DeadLetterFilter(since=LATER + timedelta(seconds=1)), []),
        (DeadLetterFilter(until=LATER), []),
        (DeadLetterFilter(until=LATER + timedelta(seconds=1)), [failed, malformed, unreadable]),
    ):
        assert [one for one in (failed, malformed, unreadable) if choice.matches(one)] == taken


STATUSES = st.sampled_from(["result", "absence", "failure"])


@given(
    others=st.lists(st.tuples(st.integers(1, 5), STATUSES, st.sampled_from("fg")), max_size=4),
    times=st.integers(1, 3),
)
def test_an_opening_undoes_the_failure_it_is_for_and_nothing_else(
    others: list[tuple[int, Any, str]], times: int
) -> None:
    """Check any other answers, and any number of redrives."""
    fold, failure = Fold(app), answer(3, "failure", "f")
    deltas = [failure, *(answer(*one) for one in others)]
    for number, one in enumerate(deltas):
        fold.add(Delta("d1", START, str(number), START, slot="owner", answer=one))
    before = fold.windows["d1", START].fields["owner"]
    for second in range(times):
        value = reopening(app, found(), LATER + timedelta(seconds=second)).encode()
        snapshot = fold.add(Decoder(app).feedback(Record("feedback", 0, 0, timestamp_ms(START), b"d1", value)))
        assert snapshot, "an reopening is a record that the job takes"
    after = fold.windows["d1", START].fields["owner"]
    if before["version"] == 3 and before["status"] == "failure":
        assert after["fingerprint"] not in "fg"
    else:
        assert after == before


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=1)])
def test_a_failure_of_a_worker_whose_clock_was_ahead_is_undone(ahead: timedelta) -> None:
    fold, failed_at = Fold(app), LATER + ahead
    failure = answer(3, "failure", "f") | {"ts": failed_at}
    fold.add(Delta("d1", START, "f", START, slot="owner", answer=failure))
    value = reopening(app, found(failed_at=failed_at), LATER).encode()
    fold.add(Decoder(app).feedback(Record("feedback", 0, 0, timestamp_ms(START), b"d1", value)))
    assert fold.windows["d1", START].fields["owner"]["fingerprint"] == REDRIVEN


def test_a_reopened_slot_is_requested_again() -> None:
    fold = Fold(app)
    event = {"plate": "P", "ts": START}
    first = fold.add(Delta("d1", START, "e", START, ts=START, values=event))
    assert first
    request = next(one for one in plan(app, first, LATER) if one.enrichment == "owner")
    failed = fold.add(Delta("d1", START, "a", START, slot="owner", answer=answer(1, "failure", request.fingerprint)))
    assert failed
    assert "owner" not in {one.enrichment for one in plan(app, failed, LATER)}
    value = reopening(app, found(version=1, spent=3), LATER).encode()
    opened = fold.add(Decoder(app).feedback(Record("feedback", 0, 0, timestamp_ms(START), b"d1", value)))
    assert opened
    assert opened.enrichments["owner"].spent == 3, "the budget is not filled up by a redrive"
    again = next(one for one in plan(app, opened, LATER) if one.enrichment == "owner")
    assert (again.fingerprint, again.inputs) == (request.fingerprint, request.inputs)


@pytest.mark.parametrize(("later", "spent"), [(timedelta(minutes=58), 3), (timedelta(hours=2), None)])
def test_a_redrive_spends_nothing_of_a_later_period(later: timedelta, spent: int | None) -> None:
    limited = Application(
        name="limited", event=Seen, state=Car, enrichments=(owner, quote, street), budget=Budget(requests=9)
    )
    assert reopening(limited, found(spent=3, failed_at=LATER), LATER + later).spent == spent


def answer(version: int, status: str, fingerprint: str) -> dict[str, Any]:
    result = {"name": "x", "rating": 1.0} if status == "result" else None
    facts = {"version": version, "status": status, "ts": START, "fingerprint": fingerprint, "result": result}
    return Answer.model_validate(facts).model_dump()
