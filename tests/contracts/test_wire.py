"""What the wire's models and the decoder refuse alike."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts.decode import Decoder
from contracts.record import Record, Refused
from contracts.wire import Answer, Feedback, Snapshot, Wire
from tests.everything import app

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIFE: dict[str, Any] = {"device_id": "d", "first_seen": NOW}
ABSENT: dict[str, Any] = {"status": "absence", "ts": NOW, "fingerprint": "f"}
OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC) | OFFSETS)  # noqa: DTZ001
RESULTS = st.dictionaries(st.text(), st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text())


@given(first_seen=TIMES, ts=TIMES, reason=st.none() | st.text(), result=st.none() | RESULTS)
def test_feedback_is_written_as_all_else_is(**facts: Any) -> None:
    result = facts.pop("result")
    results = None if result is None else {"owner": result}
    one = Feedback(
        device_id="d", enrichment="owner", version=1, status="result", fingerprint="f", result=results, **facts
    )
    assert one.encode() == Wire.encode(one)


@pytest.mark.parametrize("version", [0, -1, -(2**63)])
def test_a_version_counts_at_least_one_delta(version: int) -> None:
    for model, facts in (
        (Answer, ABSENT),
        (Feedback, LIFE | ABSENT | {"enrichment": "owner"}),
        (Snapshot, LIFE | {"as_of": NOW, "state": {}}),
    ):
        model.model_validate(facts | {"version": 1})
        with pytest.raises(ValidationError, match="version"):
            model.model_validate(facts | {"version": version})


def test_the_decoder_refuses_the_same_version() -> None:
    good = Feedback.model_validate(LIFE | ABSENT | {"enrichment": "owner", "version": 1}).encode()
    assert Decoder(app).feedback(_record(good)).answer
    with pytest.raises(Refused, match="invalid_field: version"):
        Decoder(app).feedback(_record(good.replace(b'"version":1', b'"version":0')))


def _record(value: bytes) -> Record:
    return Record("", 0, 0, NOW, b"d", value)
