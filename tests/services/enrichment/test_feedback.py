"""The records that a worker writes about a request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from contracts import Budget
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.planning.plan import plan
from contracts.planning.request import Request
from contracts.records.record import Record
from contracts.wire import Feedback
from services.enrichment.calls.caller import Outcome
from services.enrichment.feedback import encode
from services.enrichment.planner import EnrichmentPlanner
from tests.services.enrichment.fleet import START, application, snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = Request(
    device_id="d", first_seen=NOW, enrichment="owner", fingerprint="f", version=3, as_of=NOW, inputs={"plate": "p"}
)
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


def test_a_result_beyond_the_largest_record_is_a_failure() -> None:
    outcome, value = encode(REQUEST, RESULT, NOW, 400)
    written = Feedback.model_validate_json(value)
    assert (outcome.status, written.status, written.result) == ("failure", "failure", None)
    assert (written.reason or "").endswith("and 400 are allowed")
    assert len(value) <= 400
