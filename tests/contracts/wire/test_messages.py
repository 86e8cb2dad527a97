"""The records that both the wire's models and the decoder refuse."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts.records.decode import Decoder
from contracts.records.record import Record, RecordError, timestamp_ms
from contracts.wire import LARGEST_COUNT, Answer, Feedback, Snapshot, Wire
from tests.everything import EPOCH, app

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW: dict[str, Any] = {"device_id": "d", "first_seen": NOW}
ABSENT: dict[str, Any] = {"status": "absence", "ts": NOW, "fingerprint": "f"}
OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC) | OFFSETS)  # noqa: DTZ001
RESULTS = st.dictionaries(st.text(), st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text())


@given(first_seen=TIMES, ts=TIMES, reason=st.none() | st.text(), result=st.none() | RESULTS)
def test_feedback_is_written_as_all_else_is(**facts: Any) -> None:
    result = facts.pop("result")
    results = None if result is None else {"owner": result}
    feedback = Feedback(
        device_id="d", enrichment="owner", version=1, status="result", fingerprint="f", result=results, **facts
    )
    assert feedback.encode() == Wire.encode(feedback)


@pytest.mark.parametrize("version", [0, -1, -(2**63)])
def test_a_version_counts_at_least_one_delta(version: int) -> None:
    for model, facts in (
        (Answer, ABSENT),
        (Feedback, WINDOW | ABSENT | {"enrichment": "owner"}),
        (Snapshot, WINDOW | {"as_of": NOW, "state": {}}),
    ):
        model.model_validate(facts | {"version": 1})
        with pytest.raises(ValidationError, match="version"):
            model.model_validate(facts | {"version": version})


def test_the_decoder_refuses_the_same_version() -> None:
    good = Feedback.model_validate(WINDOW | ABSENT | {"enrichment": "owner", "version": 1}).encode()
    assert Decoder(app).feedback(_record(good)).answer
    with pytest.raises(RecordError, match="invalid_field: version"):
        Decoder(app).feedback(_record(good.replace(b'"version":1', b'"version":0')))


@pytest.mark.parametrize(("epoch", "good"), [(0, True), (EPOCH, True), (EPOCH + 1, False), (LARGEST_COUNT + 1, False)])
def test_the_decoder_refuses_an_answer_of_a_later_epoch(epoch: int, *, good: bool) -> None:
    feedback = Feedback.model_validate(WINDOW | ABSENT | {"enrichment": "owner", "version": 1})
    record = _record(feedback.model_copy(update={"epoch": epoch}).encode())
    with nullcontext() if good else pytest.raises(RecordError, match="invalid_field: epoch"):
        Decoder(app, EPOCH).feedback(record)


@pytest.mark.parametrize("version", [LARGEST_COUNT + 1, 2**63 - 1])
def test_the_decoder_refuses_an_impossible_version(version: int) -> None:
    feedback = Feedback.model_validate(WINDOW | ABSENT | {"enrichment": "owner", "version": 1})
    with pytest.raises(RecordError, match="invalid_field: version"):
        Decoder(app).feedback(_record(feedback.model_copy(update={"version": version}).encode()))


def test_feedback_of_a_release_without_epochs_is_of_the_first() -> None:
    facts = {"device_id": "d", "first_seen": NOW, "enrichment": "owner", "version": 1, "status": "absence", "ts": NOW}
    assert (Decoder(app).feedback(_record(orjson.dumps(facts | {"fingerprint": "f"}))).answer or {})["epoch"] == 0


def _record(value: bytes) -> Record:
    return Record("", 0, 0, timestamp_ms(NOW), b"d", value)
