"""The decision: the effect of records on a store does not depend on how they are divided into batches."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.records.record import Record
from contracts.sinks import Deletion, Move, RowBatch, Target, Windows
from contracts.testing.memory_store import MemoryStore
from contracts.testing.stores import StoredRow
from services.sink.plan import LAST_US, Planner
from tests.services.sink.records import (
    GRACE,
    HOUR,
    LIFETIME,
    NOW_US,
    STATE,
    TABLE,
    Change,
    document,
    folded,
    record,
    row,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.model.named_state import NamedState

CHANGES = st.lists(
    st.builds(
        Change,
        key=st.sampled_from("ab"),
        window=st.integers(0, 2),
        epoch=st.integers(0, 1),
        version=st.none() | st.integers(1, 4),
    ),
    max_size=40,
)
NONE = timedelta(0)
DERIVED = replace(STATE, key="key", source="device_id", windowed=False)


def planner(windows: Windows = Windows.NEWEST, retention: timedelta = NONE) -> Planner:
    return Planner(STATE, windows, retention)


async def stored(
    records: Sequence[Record], cuts: set[int], windows: Windows, state: NamedState = STATE
) -> list[StoredRow]:
    """Return the rows of a store when the records are divided into batches at these positions."""
    store, planned = MemoryStore(Target("flights", "snapshots", windows)), Planner(state, windows, NONE)
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(records)), len(records)]
    for start, end in pairwise(bounds):
        plan = planned.plan(records[start:end], NOW_US)
        await store.write(RowBatch(plan.steps, {0: Move(start, end)}))
    return sorted(StoredRow(one.key, *one.order, json.loads(one.value)) for one in store.state.rows.values())


def derived(device: str, window: int, version: int, offset: int) -> Record:
    """A record that a device gives the key `k`."""
    change = Change(device, window, version=version)
    return record(change, offset=offset)._replace(value=orjson.dumps(document(change) | {"key": "k"}))


@given(CHANGES, st.sets(st.integers(0, 40)), st.sampled_from(Windows))
async def test_batches_have_the_effect_of_their_records_one_by_one(
    changes: list[Change], cuts: set[int], windows: Windows
) -> None:
    records = [record(change, offset=offset) for offset, change in enumerate(changes)]
    assert await stored(records, cuts, windows) == folded(changes, windows)


@given(st.data(), st.sampled_from(Windows), st.sets(st.integers(0, 12)))
async def test_derived_records_of_several_devices_give_the_same_rows_in_every_order(
    data: st.DataObject, windows: Windows, cuts: set[int]
) -> None:
    """Also those of equal order, where one of them must be chosen."""
    devices = st.tuples(st.sampled_from(["d1", "d2", "é"]), st.integers(0, 1), st.integers(1, 2))
    given_by = data.draw(st.lists(devices, max_size=12))
    records = [derived(*one, offset=offset) for offset, one in enumerate(given_by)]
    other = data.draw(st.permutations(records))
    assert await stored(records, cuts, windows, DERIVED) == await stored(other, set(), windows, DERIVED)


@given(CHANGES)
def test_records_without_tombstones_are_one_step_of_one_row_for_each_key(changes: list[Change]) -> None:
    versions = [change for change in changes if change.version is not None]
    plan = planner().plan([record(change) for change in versions], NOW_US)
    assert len(plan.steps) == bool(versions)
    assert plan.superseded == len(versions) - len({change.key for change in versions})


def test_a_row_names_its_record_and_expires_after_window_grace_and_retention() -> None:
    (step,) = planner(retention=HOUR).plan([record(Change("a", 1), partition=3, offset=7)], NOW_US).steps
    (found,) = step.rows
    expires_at = NOW_US + (HOUR + LIFETIME + GRACE + HOUR) // timedelta(microseconds=1)
    assert (found.partition, found.offset, found.expires_at) == (3, 7, expires_at)
    assert StoredRow(found.key, *found.order, json.loads(found.value)) == row(Change("a", 1))


def test_a_row_that_has_expired_is_not_written() -> None:
    kept_for = (LIFETIME + GRACE) // timedelta(microseconds=1)
    for now, steps, expired in ((NOW_US + kept_for - 1, 1, 0), (NOW_US + kept_for, 0, 1)):
        plan = planner().plan([record(Change("a"))], now)
        assert (len(plan.steps), plan.expired) == (steps, expired)


@pytest.mark.parametrize("state", [replace(STATE, expires_by_clock=False), replace(STATE, lifetime=None)])
def test_rows_of_a_replay_and_of_a_state_without_lifetime_do_not_expire(state: object) -> None:
    assert isinstance(state, type(STATE))
    plan = Planner(state, Windows.NEWEST, NONE).plan([record(Change("a"))], LAST_US)
    assert [one.expires_at for step in plan.steps for one in step.rows] == [None]


def test_a_row_whose_expiry_is_no_time_does_not_expire() -> None:
    plan = planner(retention=timedelta(days=365 * 9000)).plan([record(Change("a"))], NOW_US)
    assert [one.expires_at for step in plan.steps for one in step.rows] == [None]


def test_records_that_cannot_be_decoded_are_refused_and_the_others_planned() -> None:
    good, late = record(Change("a"), offset=1), b'{"device_id":"a","first_seen":0,"version":1,"as_of":253402300800000}'
    wrong = [good._replace(offset=2, value=b"{"), good._replace(offset=3, key=b"no window", value=None)]
    wrong.append(good._replace(offset=4, value=late))
    plan = planner().plan([good, *wrong], NOW_US)
    assert [one.offset for step in plan.steps for one in step.rows] == [1]
    assert [(one.record, one.reason) for one in plan.refused] == list(
        zip(
            wrong,
            ["is not JSON", "its key is not a window key", "one of its times is after the year 9999"],
            strict=True,
        )
    )


def test_a_tombstone_of_a_state_without_windows_removes_the_key() -> None:
    records = [Record("snapshots", 0, 5, 7, b"a", b"{}"), Record("snapshots", 0, 6, 7, b"a", None)]
    plan = Planner(TABLE, Windows.NEWEST, NONE).plan(records, NOW_US)
    first, second = plan.steps
    assert [(one.version, one.window_start) for one in first.rows] == [(5, 0)]
    assert second.deletions == (Deletion("a", None),)


def test_a_tombstone_of_a_derived_state_has_no_effect() -> None:
    derived = replace(STATE, windowed=False)
    assert Planner(derived, Windows.NEWEST, NONE).plan([Record("snapshots", 0, 6, 7, b"a", None)], NOW_US).steps == ()
