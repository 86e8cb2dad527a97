"""The records that a worker writes about a request."""

from __future__ import annotations

from datetime import UTC, datetime

from contracts.planning.request import Request
from contracts.wire import Feedback
from services.enrichment.calls.caller import Outcome
from services.enrichment.feedback import encode

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = Request(
    device_id="d", first_seen=NOW, enrichment="owner", fingerprint="f", version=3, as_of=NOW, inputs={"plate": "p"}
)
RESULT = Outcome("result", result={"name": "x" * 500})


def test_a_result_within_the_largest_record_is_written() -> None:
    outcome, value = encode(REQUEST, RESULT, NOW, 1_000)
    assert outcome == RESULT
    assert Feedback.model_validate_json(value).result == {"owner": RESULT.result}


def test_a_result_beyond_the_largest_record_is_a_failure() -> None:
    outcome, value = encode(REQUEST, RESULT, NOW, 400)
    written = Feedback.model_validate_json(value)
    assert (outcome.status, written.status, written.result) == ("failure", "failure", None)
    assert (written.reason or "").endswith("and 400 are allowed")
    assert len(value) <= 400
