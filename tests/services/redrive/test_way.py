"""By which way a letter gets back, and that a slot that is opened loses nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.planning.plan import plan
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Delta, Reason, Record
from contracts.wire import Answer, DeadLetter
from services.redrive.letters import Choice, Found
from services.redrive.way import Way, opening, way
from tests.services.enrichment.fleet import Car, Seen, app, owner, quote, street

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(minutes=1)
LIVE = type(app)(name="live", event=Seen, state=Car, enrichments=(owner, quote, street))
"""As the fleet, but no replay: its lives end."""


def found(reason: Reason = Reason.ENRICHMENT_FAILED, **facts: object) -> Found:
    given = {"topic": "snapshots", "partition": 0, "offset": 7, "timestamp": START, "reason": reason.value}
    failed = {"enrichment": "owner", "first_seen": START, "version": 3} if reason is Reason.ENRICHMENT_FAILED else {}
    return Found(DeadLetter.model_validate(given | failed | facts), b"d1", LATER)


@pytest.mark.parametrize(
    ("letter", "expected"),
    [
        (found(Reason.MALFORMED, topic="events"), Way.PRODUCED),
        (found(Reason.INVALID_FIELD, topic="feedback"), Way.PRODUCED),
        (found(Reason.EMPTY, topic="events"), Way.CLOSED),
        (found(Reason.LARGE_SNAPSHOT), Way.CLOSED),
        (found(Reason.UNDECODABLE_SNAPSHOT), Way.CLOSED),
        (found(Reason.MALFORMED, topic="somebody's"), Way.CLOSED),
        (found(), Way.ASKED),
        (found(enrichment="removed"), Way.CLOSED),
        (found(version=None), Way.CLOSED),
        (found(first_seen=None), Way.CLOSED),
        (replace(found(), key=None), Way.CLOSED),
        (replace(found(), key=b""), Way.CLOSED),
        (Found(None, b"d1", START), Way.UNREADABLE),
    ],
)
def test_the_way_of_each_kind(letter: Found, expected: Way) -> None:
    assert way(LIVE, letter, LATER) is expected


def test_nothing_is_asked_for_a_life_that_is_over_but_in_a_replay() -> None:
    over = START + Car.lifetime + Car.grace + timedelta(seconds=1)
    assert (way(LIVE, found(), over), way(app, found(), over)) == (Way.OVER, Way.ASKED)


@pytest.mark.parametrize(
    "letter",
    [
        Found(None, b"d1", LATER),
        replace(found(), key=None),
        found(first_seen=None),
        found(enrichment=None),
        found(version=None),
    ],
)
def test_a_letter_that_does_not_say_what_to_ask_opens_nothing(letter: Found) -> None:
    with pytest.raises(ValueError, match="does not say what to ask again"):
        opening(letter, LATER)


def test_letters_are_chosen_by_reason_enrichment_and_time() -> None:
    failed, malformed = found(), found(Reason.MALFORMED, topic="events")
    unreadable = Found(None, None, LATER)
    for choice, taken in (
        (Choice(), [failed, malformed, unreadable]),
        (Choice(reasons=frozenset({"malformed", "late"})), [malformed]),
        (Choice(enrichments=frozenset({"owner"})), [failed]),
        (Choice(enrichments=frozenset({"quote"})), []),
        (Choice(since=LATER), [failed, malformed, unreadable]),
        (Choice(since=LATER + timedelta(seconds=1)), []),
        (Choice(until=LATER), []),
        (Choice(until=LATER + timedelta(seconds=1)), [failed, malformed, unreadable]),
    ):
        assert [one for one in (failed, malformed, unreadable) if choice.takes(one)] == taken


STATUSES = st.sampled_from(["result", "absence", "failure"])


@given(
    others=st.lists(st.tuples(st.integers(1, 5), STATUSES, st.sampled_from("fg")), max_size=4),
    times=st.integers(1, 3),
)
def test_an_opening_undoes_the_failure_it_is_for_and_nothing_else(
    others: list[tuple[int, Any, str]], times: int
) -> None:
    """Whatever else was answered, and however often the letter is brought back."""
    fold, failure = Fold(app), answer(3, "failure", "f")
    deltas = [failure, *(answer(*one) for one in others)]
    for number, one in enumerate(deltas):
        fold.add(Delta("d1", START, str(number), START, slot="owner", answer=one))
    before = fold.lives["d1", START].fields["owner"]
    for second in range(times):
        value = opening(found(), LATER + timedelta(seconds=second)).encode()
        snapshot = fold.add(Decoder(app).feedback(Record("feedback", 0, 0, START, b"d1", value)))
        assert snapshot, "an opening is a record that the job takes"
    after = fold.lives["d1", START].fields["owner"]
    if before["version"] == 3 and before["status"] == "failure":
        assert after["fingerprint"] not in "fg"
    else:
        assert after == before


def test_what_was_opened_is_asked_again() -> None:
    fold = Fold(app)
    event = {"plate": "P", "ts": START}
    first = fold.add(Delta("d1", START, "e", START, ts=START, values=event))
    assert first
    asked = next(one for one in plan(app, first, LATER) if one.enrichment == "owner")
    failed = fold.add(Delta("d1", START, "a", START, slot="owner", answer=answer(1, "failure", asked.fingerprint)))
    assert failed
    assert "owner" not in {one.enrichment for one in plan(app, failed, LATER)}
    value = opening(found(version=1, spent=3), LATER).encode()
    opened = fold.add(Decoder(app).feedback(Record("feedback", 0, 0, START, b"d1", value)))
    assert opened
    assert opened.enrichments["owner"].spent == 3, "the budget is not filled up by a redrive"
    again = next(one for one in plan(app, opened, LATER) if one.enrichment == "owner")
    assert (again.fingerprint, again.inputs) == (asked.fingerprint, asked.inputs)


def answer(version: int, status: str, fingerprint: str) -> dict[str, Any]:
    result = {"name": "x", "rating": 1.0} if status == "result" else None
    facts = {"version": version, "status": status, "ts": START, "fingerprint": fingerprint, "result": result}
    return Answer.model_validate(facts).model_dump()
