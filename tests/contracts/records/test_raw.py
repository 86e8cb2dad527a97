"""Raw records: the events that they are decoded to, what becomes a dead letter, and what cannot be declared."""

import json
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import (
    Application,
    DeclarationError,
    FromHeader,
    FromKey,
    FromOrigin,
    FromTimestamp,
    FromValue,
    PackedIntegers,
    Raw,
    RawRecord,
    Suite,
    Topics,
)
from contracts.model.topics import Stamp
from contracts.records.raw import RawDecoder, refused
from contracts.records.record import Reason, RecordError
from contracts.records.shape import read
from contracts.types.key import LARGEST_KEY
from contracts.wire import DeadLetter
from tests.waveforms import PACKED, TEXT, Blob, Chunk, application

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MILLISECONDS = round(NOW.timestamp() * 1000)
SAMPLES = struct.pack("<8h", *range(8))
RECORD = RawRecord("packed", 2, 7, NOW, b"ann", struct.pack("<q", MILLISECONDS) + SAMPLES, {"beds": b"3"})
LINES = RawRecord("text", 0, 1, NOW, b"ann", b"1,2\n3,4", {"at": str(MILLISECONDS).encode()})


def events(record: RawRecord, raw: Raw) -> list[dict[str, Any]]:
    """The events of a record, each of which the job would accept."""
    app = application((raw,))
    decoded = RawDecoder(app, raw).decode(record)
    assert {event.key for event in decoded} <= {b"ann"}
    for event in decoded:
        read(app.event_shape, event.value, app.largest_record)
    return [orjson.loads(event.value) for event in decoded]


def reason(record: RawRecord, raw: Raw) -> tuple[str, str | None]:
    """Why a record is refused."""
    with pytest.raises(RecordError) as refusal:
        RawDecoder(application((raw,), largest_record=4096), raw).decode(record)
    return refusal.value.reason, refusal.value.detail


def test_declared_samples_become_an_event() -> None:
    assert events(RECORD, PACKED) == [
        {
            "event_id": "packed/2/7",
            "patient": "ann",
            "ts": "2026-01-01T00:00:00+00:00",
            "beds": 3,
            "ecg": [0.0, 1.0, 2.0, 3.0],
            "pulse": [0.5, 1.5, 2.5, 3.5],
        }
    ]


def test_a_function_decodes_to_several_events_each_with_its_own_id() -> None:
    decoded = events(LINES, TEXT)
    assert [(event["event_id"], event["ecg"]) for event in decoded] == [("text/0/1/0", [1, 2]), ("text/0/1/1", [3, 4])]
    assert events(LINES, TEXT) == decoded
    assert [event["event_id"] for event in events(replace(LINES, value=b"1"), TEXT)] == ["text/0/1"]
    assert events(replace(LINES, value=b"model"), TEXT)[0]["ecg"] == [1]


def test_each_field_may_come_from_any_part_of_the_record() -> None:
    fields = {
        "patient": FromValue("8s", at=8),
        "ts": FromTimestamp(),
        "event_id": FromOrigin(),
        "beds": FromValue(">H", at=16),
        "admitted": FromHeader("admitted"),
    }
    raw = Raw("packed", PackedIntegers(8, channels=("ecg",), skip=18), fields)
    value = struct.pack("<q8s", 0, b"ann") + struct.pack(">H", 5) + b"\1\2"
    (event,) = events(replace(RECORD, value=value, headers={"admitted": b"2026-01-01T00:00:00Z"}), raw)
    assert (event["patient"], event["beds"], event["ecg"]) == ("ann", 5, [1, 2])
    assert event["admitted"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"value": b""}, (Reason.EMPTY, None)),
        ({"value": bytes(5000)}, (Reason.OVERSIZED, "5000 bytes, and 4096 are allowed")),
        ({"value": RECORD.value[:-1]}, (Reason.UNDECODABLE, "has 15 bytes of samples: the last one is truncated")),
        ({"value": RECORD.value[:-4]}, (Reason.UNDECODABLE, "has 3 samples of each channel, and 4 are declared")),
        ({"value": b"abc"}, (Reason.UNDECODABLE, "ts: the value ends after 3 bytes")),
        ({"value": struct.pack("<q", 1 << 62) + SAMPLES}, (Reason.UNDECODABLE, "ts: 4611686018427387904 is no time")),
        ({"key": None}, (Reason.UNDECODABLE, "patient: the record has no key")),
        ({"key": b"\xff"}, (Reason.UNDECODABLE, "patient: the key is not UTF-8")),
        ({"headers": {}}, (Reason.UNDECODABLE, "beds: the record has no header 'beds'")),
        ({"headers": {"beds": b"x"}}, (Reason.UNDECODABLE, "beds: invalid literal for int()")),
    ],
)
def test_a_record_that_cannot_be_decoded_is_refused(change: dict[str, Any], expected: tuple[str, str | None]) -> None:
    refusal, detail = reason(replace(RECORD, **change), PACKED)
    assert refusal == expected[0]
    assert (detail or "").startswith(expected[1] or "")


@pytest.mark.parametrize(
    ("value", "message"),
    [(b"bug", "ZeroDivisionError: division by zero"), (b"a", "could not convert"), (b"\xff", "codec can't decode")],
)
def test_a_function_that_raises_refuses_its_record(value: bytes, message: str) -> None:
    refusal, detail = reason(replace(LINES, value=value), TEXT)
    assert refusal == Reason.UNDECODABLE
    assert message in (detail or "")


def test_the_dead_letter_of_an_error_with_half_a_surrogate_is_written() -> None:
    def decode(record: RawRecord) -> dict[str, Any]:
        raise ValueError(f"unknown kind {json.loads(record.value)}")

    record = replace(LINES, value=rb'"\ud800"')
    with pytest.raises(RecordError) as raised:
        events(record, Raw("text", decode, TEXT.fields))
    written = DeadLetter.model_validate_json(refused(record, raised.value).value)
    assert written.detail == "unknown kind ?"


class UnprintableError(ValueError):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_without_a_text_refuses_its_record() -> None:
    def decode(_: RawRecord) -> dict[str, Any]:
        raise UnprintableError

    assert reason(LINES, Raw("text", decode, TEXT.fields)) == (Reason.UNDECODABLE, "UnprintableError")


def test_a_key_that_is_too_large_refuses_its_record() -> None:
    def decode(_: RawRecord) -> dict[str, Any]:
        return {"patient": LARGEST_KEY * "a" + "b", "ecg": [1.0]}

    refusal = reason(LINES, Raw("text", decode, TEXT.fields))
    assert refusal == (Reason.UNDECODABLE, "patient: 501 bytes, and 500 are allowed")


@pytest.mark.parametrize("returned", ["text", 7, [1], [{"ecg": object()}], {"patient": 5}])
def test_a_function_that_returns_no_event_refuses_its_record(returned: Any) -> None:
    raw = Raw("text", lambda _: returned, TEXT.fields)
    assert reason(LINES, raw)[0] == Reason.UNDECODABLE


@pytest.mark.parametrize(
    ("samples", "problem"),
    [
        ([1.0, float("nan")], "ecg.1 is not a finite number"),
        ([float("-inf"), 1.0], "ecg.0 is not a finite number"),
        (np.array([0.5, np.inf]), "ecg.1 is not a finite number"),
        (np.array([1.0, 2.0, np.nan, 4.0])[::2], "ecg.1 is not a finite number"),
    ],
)
def test_a_number_that_json_does_not_have_is_refused_as_in_an_event(samples: Any, problem: str) -> None:
    raw = Raw("text", lambda _: {"ecg": samples}, TEXT.fields)
    assert reason(LINES, raw) == (Reason.UNDECODABLE, problem)


def test_a_missing_sample_may_be_null() -> None:
    raw = Raw("text", lambda _: {"ecg": [1.0, None, 3.0]}, TEXT.fields)
    assert events(LINES, raw)[0]["ecg"] == [1.0, None, 3.0]


def test_sys_exit_in_a_function_refuses_its_record() -> None:
    raw = Raw("text", lambda _: sys.exit("no"), TEXT.fields)
    assert reason(LINES, raw) == (Reason.UNDECODABLE, "SystemExit: no")


def test_a_function_may_drop_a_record() -> None:
    raw = Raw("text", lambda _: None, TEXT.fields)
    assert events(LINES, raw) == []


def test_an_event_that_is_larger_than_a_record_is_refused() -> None:
    refusal, detail = reason(replace(LINES, value=b"1," * 1300 + b"1"), TEXT)
    assert refusal == Reason.OVERSIZED
    assert (detail or "").startswith("the event has ")


@given(
    st.binary(max_size=40), st.none() | st.binary(max_size=5), st.dictionaries(st.just("beds"), st.binary(max_size=3))
)
def test_any_record_is_an_event_or_a_dead_letter(value: bytes, key: bytes | None, headers: dict[str, bytes]) -> None:
    record = replace(RECORD, value=value, key=key, headers=headers)
    app = application()
    for raw in (PACKED, TEXT):
        try:
            outputs = RawDecoder(app, raw).decode(record)
        except RecordError as error:
            outputs = [refused(record, error)]
            dead_letter = DeadLetter.model_validate_json(outputs[0].value)
            assert (dead_letter.topic, dead_letter.partition, dead_letter.offset, dead_letter.timestamp) == (
                "packed",
                2,
                7,
                NOW,
            )
        assert all(output.key == key for output in outputs)


def test_a_dead_letter_shows_the_beginning_of_its_record() -> None:
    error = RecordError(Reason.UNDECODABLE, "x")
    assert DeadLetter.model_validate_json(refused(LINES, error).value).head == "1,2\n3,4"
    output = refused(replace(RECORD, key=None, value=b"\xff" * 5000), error)
    head = DeadLetter.model_validate_json(output.value).head or ""
    assert head.startswith("0xffff")
    assert len(head) == 1000
    assert output.key is None


def test_decoded_events_have_the_times_of_their_raw_records() -> None:
    stamps = {topic.name: topic.stamp for topic in Suite(application(), named("other", PACKED, TEXT)).catalogue()}
    assert (stamps["events"], stamps["packed"], stamps["text"]) == (Stamp.PRODUCER, Stamp.BROKER, Stamp.BROKER)
    assert stamps["feedback"] == Stamp.BROKER


def named(name: str, *raw: Raw) -> Application:
    """Another application that reads the same events."""
    topics = Topics(prefix=f"{name}_", events="events", partitions=2)
    return Application(name=name, event=Chunk, state=Blob, topics=topics, raw=raw)


def test_a_suite_decodes_each_raw_topic_once() -> None:
    first = application()
    assert Suite(first, named("other", PACKED, TEXT)).raw_sources() == ((first, PACKED), (first, TEXT))
    with pytest.raises(DeclarationError, match="Write the same raw"):
        Suite(first, named("other"))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (Raw("events", lambda _: None), "another use"),
        (Raw("x", PackedIntegers()), "has no field 'samples'"),
        (Raw("x", lambda _: None, {"bed": FromKey()}), "has no field 'bed'"),
        (Raw("x", PackedIntegers(channels=("ecg",)), {"ts": FromTimestamp()}), "gives no 'patient'"),
        (Raw("x", PackedIntegers(channels=("patient",)), {"ts": FromTimestamp()}), "gives no 'ecg'"),
        (Raw("x", lambda _: None, {"ts": FromValue("<q")}), "unit="),
        (Raw("x", lambda _: None, {"patient": FromTimestamp()}), "is no time"),
    ],
)
def test_a_source_that_does_not_fit_the_event_is_refused(raw: Raw, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        application(raw=(raw,))


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Raw("x", lambda _: None, {"patient": "key"}),  # type: ignore[dict-item]
        lambda: Raw("x", "json", {"patient": FromKey()}),  # type: ignore[arg-type]
        lambda: FromHeader("x", unit=1),  # type: ignore[arg-type]
        lambda: FromValue("<qq"),
        lambda: FromValue("z"),
        lambda: FromValue("<q", at=-1),
        lambda: FromValue("<d", unit=timedelta(seconds=1)),
        lambda: FromHeader("x", unit=timedelta(0)),
    ],
)
def test_a_source_that_gives_no_value_is_refused(declare: Callable[[], object]) -> None:
    with pytest.raises(DeclarationError, match="Write"):
        declare()
