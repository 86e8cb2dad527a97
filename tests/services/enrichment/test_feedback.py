"""The records that a worker writes about a request."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from contracts import Budget
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.planning.plan import plan
from contracts.planning.request import Request
from contracts.records.record import Record
from contracts.wire import LARGEST_HEAD, Feedback
from contracts.wire.dead_letter import LARGEST_DETAIL
from services.enrichment.calls.caller import Outcome
from services.enrichment.feedback import encode, failed_delivery, failed_request
from services.enrichment.planner import EnrichmentPlanner
from tests.services.enrichment.fleet import START, application, snapshot

if TYPE_CHECKING:
    from contracts.wire import Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = Request(
    device_id="d", first_seen=NOW, enrichment="owner", fingerprint="f", version=3, as_of=NOW, inputs={"plate": "p"}
)
DELIVERY = replace(REQUEST, inputs={"event": "opened", "id": "a"})
RESULT = Outcome("result", result={"name": "x" * 500})


def test_a_result_within_the_largest_record_is_written() -> None:
    outcome, value = encode(REQUEST, RESULT, NOW, 1_000)
    assert outcome == RESULT
    assert Feedback.model_validate_json(value).result == {"owner": RESULT.result}


@pytest.mark.parametrize(("answered", "spent"), [(START, 1), (START + timedelta(hours=1), None)])
def test_an_answer_has_what_is_spent_of_its_own_period(answered: datetime, spent: int | None) -> None:
    limited = application()
    limited.budget = Budget(requests=1, per=timedelta(hours=1))
    (request,) = plan(limited, snapshot(1), START)
    planner = EnrichmentPlanner(limited, Counts(metrics.CATALOGUE))
    _, output = planner.encode(request, Outcome("absence"), answered)
    record = Record("snapshots", 0, 0, 0, b"d1", b"{}")
    dead_letter = planner.dead_letter(record, request, Outcome("failure", reason="down"), answered)
    assert (Feedback.model_validate_json(output.value or b"").spent, dead_letter.spent) == (spent, spent)


@pytest.mark.parametrize("status", ["failure", "absence"])
def test_texts_of_a_function_are_cut(status: Status) -> None:
    long = Outcome(status, reason="why " * 500_000, response="body " * 500_000)
    outcome, value = encode(REQUEST, long, NOW, 10_000)
    assert (outcome, Feedback.model_validate_json(value).reason) == (long, (long.reason or "")[:LARGEST_DETAIL])
    record = Record("snapshots", 0, 0, 0, b"d1", b"{}")
    for dead_letter in failed_request(record, REQUEST, long, NOW), failed_delivery(record, DELIVERY, long, NOW):
        assert dead_letter.response == (long.response or "")[:LARGEST_HEAD]
        assert len(dead_letter.encode()) < 10_000


def test_a_result_beyond_the_largest_record_is_a_failure() -> None:
    outcome, value = encode(REQUEST, RESULT, NOW, 400)
    written = Feedback.model_validate_json(value)
    assert (outcome.status, written.status, written.result) == ("failure", "failure", None)
    assert (written.reason or "").endswith("and 400 are allowed")
    assert len(value) <= 400
