"""Checks of a record's key and times in plain Python; tests/spark_app/query/test_decode.py compares the job with it."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest

from contracts.records.decode import Decoder
from contracts.records.record import Reason, Record, RecordError, timestamp_ms
from contracts.wire.partition import partition
from tests import filtered, hostile, keyed
from tests.everything import KEPT_FOR, NOW, answer_record, app

GOOD = Record("events", 0, 0, timestamp_ms(NOW), b"d", hostile.good())
NO_NAN = "not one JSON object: JSON has neither NaN nor Infinity, so send null, or leave the field out"
ANSWER = answer_record(
    {
        "device_id": "d",
        "first_seen": NOW - timedelta(minutes=5),
        "version": 1,
        "ts": NOW,
        "fingerprint": "f",
        "answer": ("owner", "absence", None),
    }
)


def refusal(record: Record, decoder: Decoder | None = None) -> tuple[Reason, str | None]:
    decoder = decoder or Decoder(app)
    with pytest.raises(RecordError) as refused:
        (decoder.feedback if record.topic == "feedback" else decoder.event)(record)
    return refused.value.reason, refused.value.detail


@pytest.mark.parametrize("record", [GOOD, ANSWER], ids=["event", "feedback"])
@pytest.mark.parametrize(
    ("key", "message"),
    [
        (None, "the record has no key, and its device_id is d"),
        (b"e" * 200, f"the record's key is {'e' * 100}, and its device_id is d"),
        (b"\xff", "the record's key is 0xFF, and its device_id is d"),
    ],
)
def test_a_record_under_another_key_is_refused(record: Record, key: bytes | None, message: str) -> None:
    expected = f"{message}: send each record under the key of its device"
    assert refusal(record._replace(key=key)) == (Reason.WRONG_KEY, expected)


def test_the_key_is_that_of_the_state() -> None:
    decoder, value = Decoder(keyed.app), hostile.good(car="c")
    assert [delta.device_id for delta in decoder.event(GOOD._replace(key=b"c", value=value))] == ["c"]
    assert refusal(GOOD._replace(value=value), decoder)[0] is Reason.WRONG_KEY
    assert refusal(GOOD._replace(key=b"", value=hostile.good(car="")), decoder) == (
        Reason.INVALID_FIELD,
        "car is missing, or not a text of 1 or more characters and of 500 bytes or fewer",
    )


def test_the_filter_comes_after_the_shape_and_before_key_and_times() -> None:
    decoder, later = Decoder(filtered.app), NOW + timedelta(days=1)
    excluded = GOOD._replace(key=b"another", value=hostile.good(speed=0.0, ts=later))
    assert decoder.event(excluded) == ()
    passing = GOOD._replace(value=hostile.good(speed=100.0, ts=later))
    assert refusal(passing, decoder)[0] is Reason.INCREDIBLE_TIME
    assert refusal(passing._replace(key=b"another"), decoder)[0] is Reason.WRONG_KEY
    assert refusal(GOOD._replace(value=hostile.good(speed="fast")), decoder)[0] is Reason.MALFORMED


def test_a_time_ahead_of_the_brokers_clock_is_reported() -> None:
    record = GOOD._replace(value=hostile.good(ts=NOW + timedelta(minutes=2)))
    problem = "ts 2026-01-01T12:02:00.000000Z is more than 0:01:00 ahead of 2026-01-01T12:00:00.000000Z"
    what_to_do = "set the device's clock, or declare a larger skew"
    assert refusal(record) == (Reason.INCREDIBLE_TIME, f"{problem} (the record's timestamp): {what_to_do}")


def test_a_time_ahead_of_the_jobs_clock_is_refused_for_any_timestamp() -> None:
    decoder, wrong = Decoder(app, clock=lambda: NOW), NOW + timedelta(hours=2)
    record = GOOD._replace(value=hostile.good(first_seen=wrong), timestamp_ms=timestamp_ms(wrong))
    reason, detail = refusal(record, decoder)
    assert reason is Reason.INCREDIBLE_TIME
    assert "ahead of 2026-01-01T12:00:00.000000Z (the job's clock)" in (detail or "")


def test_a_stamp_ahead_of_the_jobs_clock_makes_nothing_late() -> None:
    decoder = Decoder(app, clock=lambda: NOW)
    record = GOOD._replace(timestamp_ms=timestamp_ms(NOW + 2 * KEPT_FOR))
    assert [delta.device_id for delta in decoder.event(record)] == ["d"]


def test_a_late_record_is_reported() -> None:
    record = GOOD._replace(timestamp_ms=timestamp_ms(NOW + KEPT_FOR))
    problem = "first_seen 2026-01-01T11:55:00.000000Z is more than 1:10:00 before 2026-01-01T13:10:00.000000Z"
    what_to_do = (
        "send records sooner, or declare a longer lifetime or grace; in a replay, give each record its event's time"
    )
    assert refusal(record) == (Reason.LATE, f"{problem} (the record's timestamp): {what_to_do}")


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (hostile.replaced("speed", '"x"'), "speed is not a number"),
        (hostile.replaced("load", "1.5"), "load is not a whole number"),
        (hostile.replaced("load", "true"), "load is not a whole number"),
        (hostile.replaced("load", "9223372036854775808"), "load is not a whole number"),
        (hostile.replaced("on", "1"), "on is not true or false"),
        (hostile.replaced("at", '{"lat":"x"}'), "at is not an object of the declared type"),
        (hostile.good() + b"x", "not one JSON object"),
        (hostile.replaced("speed", "NaN"), NO_NAN),
        (hostile.replaced("speed", " -Infinity "), NO_NAN),
        (hostile.replaced("at", '{"lat":Infinity}'), NO_NAN),
        (b"[1, NaN]", NO_NAN),
        (hostile.replaced("name", '"NaN"') + b"x", "not one JSON object"),
        (hostile.replaced("name", '"\\ud800"'), "an escape is half a character"),
    ],
)
def test_a_malformed_record_is_reported(value: bytes, detail: str) -> None:
    assert refusal(GOOD._replace(value=value)) == (Reason.MALFORMED, detail)


def test_a_too_large_record_is_reported() -> None:
    detail = f"{app.largest_record + 1} bytes, and {app.largest_record} are allowed"
    assert refusal(GOOD._replace(value=bytes(app.largest_record + 1))) == (Reason.OVERSIZED, detail)


@pytest.mark.parametrize("record", [GOOD, ANSWER], ids=["event", "feedback"])
@pytest.mark.parametrize("value", [None, b""], ids=["tombstone", "empty"])
def test_a_record_without_a_value_is_reported(record: Record, value: bytes | None) -> None:
    assert refusal(record._replace(value=value)) == (Reason.EMPTY, None)


@pytest.mark.parametrize(("status", "result"), [("result", None), ("failure", {"owner": {"name": "n", "cars": []}})])
def test_an_answer_with_a_result_that_its_status_denies_is_refused(status: str, result: object) -> None:
    value = orjson.dumps(orjson.loads(ANSWER.value or b"") | {"status": status, "result": result})
    assert refusal(ANSWER._replace(value=value)) == (Reason.INVALID_FIELD, "result")


def test_an_event_in_another_partition_has_no_offset() -> None:
    decoder = Decoder(app, partitions=8)
    home = GOOD._replace(partition=partition(b"d", 8), offset=7)
    for record, offset in ((home, 7), (home._replace(partition=home.partition ^ 1), None)):
        (delta,) = decoder.event(record)
        assert delta.event_offset == offset
