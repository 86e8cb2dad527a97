"""The records, and what of an answer is one of them."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bench.query.application import app
from bench.query.records import SIZE, all_keys, checked, key, placed, value
from bench.query.store_clients import encoded
from contracts.records.named_states import named
from contracts.wire import decode_snapshot

BEGAN = "2026-01-01T12:00:00.000Z"


@given(st.integers(0, 10**12 - 1), st.integers(1, 10**6))
def test_a_record_is_a_snapshot_of_that_size(number: int, version: int) -> None:
    record = value(number, version, BEGAN)
    snapshot = decode_snapshot(record)
    assert len(record) == SIZE
    assert (snapshot.device_id, snapshot.version) == (key(number), version)
    assert checked(number, b'{"answer":' + record + b"}") == version
    assert checked(number + 1, record) is None


def test_a_truncated_or_mixed_record_is_invalid() -> None:
    record = value(5, 2, BEGAN)
    assert checked(5, record[:150]) is None
    assert checked(5, record.replace(b'"version":2', b'"version":3')) is None
    assert checked(5, b"") is None


@given(st.integers(1, 200))
def test_all_keys_have_their_first_version(count: int) -> None:
    pairs = list(all_keys(count, BEGAN))
    names = [name for name, _ in pairs]
    assert sorted(names) == [key(number) for number in range(count)]
    assert names == [key(placed(index, count)) for index in range(count)]
    assert {json.loads(record)["version"] for _, record in pairs} == {1}


def test_keys_that_come_together_are_far_apart() -> None:
    numbers = [placed(index, 5_000_000) for index in range(1_000)]
    assert all(abs(first - second) > 100_000 for first, second in pairwise(numbers))


def test_the_state_is_that_of_the_topic() -> None:
    assert named(app)["keys"].topic == "snapshots"


def test_a_command_is_written_as_redis_reads_it() -> None:
    assert encoded(b"GET", b"a\r\nb") == b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n"
