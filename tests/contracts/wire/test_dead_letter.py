"""The bytes of dead letters."""

from __future__ import annotations

from contracts import RawRecord
from contracts.records.record import Reason, Record
from contracts.types.quantize import EPOCH
from contracts.wire import NEVER_WRITTEN, DeadLetter

RECORD = Record("events", 3, 77, 1_767_225_600_123, b"d", b"<html>")
ORIGIN = b'"topic":"events","partition":3,"offset":77,"timestamp":"2026-01-01T00:00:00.123000Z"'


def test_it_has_the_origin_and_the_value_of_its_record() -> None:
    dead_letter = DeadLetter.of(RECORD, Reason.NOT_DERIVED, "ValueError: no")
    assert dead_letter.encode() == b'{"reason":"not_derived","detail":"ValueError: no",%s,"head":"<html>"}' % ORIGIN
    assert DeadLetter.of(RECORD, Reason.EMPTY).encode() == b'{"reason":"empty",%s,"head":"<html>"}' % ORIGIN


def test_facts_are_fields_and_replace_those_of_the_record() -> None:
    dead_letter = DeadLetter.of(
        RECORD, Reason.ENRICHMENT_FAILED, "x", version=4, enrichment="owner", epoch=None, head=None
    )
    assert (
        dead_letter.encode()
        == b'{"reason":"enrichment_failed","detail":"x",%s,"enrichment":"owner","version":4}' % ORIGIN
    )


def test_a_long_value_and_a_long_detail_are_cut() -> None:
    dead_letter = DeadLetter.of(RECORD._replace(value=b"x" * 999 + "\u00e9".encode()), Reason.NOT_STORED, "y" * 501)
    assert dead_letter.head == "x" * 999 + "\ufffd"
    assert dead_letter.detail == "y" * 500


def test_a_record_without_value_and_time_has_no_head_as_in_spark_and_the_time_1970() -> None:
    record = Record("snapshots", NEVER_WRITTEN, NEVER_WRITTEN, -1, None, None)
    assert DeadLetter.of(record, Reason.INVALID_ROW).encode() == (
        b'{"reason":"invalid_row","topic":"snapshots","partition":-1,"offset":-1,"timestamp":"1970-01-01T00:00:00Z"}'
    )


def test_a_raw_record_has_the_timestamp_of_its_origin() -> None:
    dead_letter = DeadLetter.of(RawRecord("raw", 0, 1, EPOCH, None, b""), Reason.EMPTY)
    assert (dead_letter.topic, dead_letter.offset, dead_letter.timestamp) == ("raw", 1, EPOCH)
