"""The decision on one key, for every state of store, role and request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.cluster import PartitionStatus, Role
from services.query.lookup.decision import NO_CONDITIONS, Conditions, FoundEntry, StoredKey, decide, iso
from services.query.lookup.problems import Problem
from services.query.lookup.version_reference import VersionReference
from services.query.store import Entry

OWNER = PartitionStatus(Role.OWNER, 0)
ENTRY = Entry(window_start=1000, epoch=70, version=5, event_time=2000, partition=1, offset=9, value=b"{}")
SEEN = StoredKey(ENTRY, is_expired=False, requested=ENTRY, remembered_since=0)

small = st.integers(0, 3)
entries = st.builds(
    Entry,
    window_start=small,
    epoch=small,
    version=small,
    event_time=small,
    partition=small,
    offset=small,
    value=st.just(b"{}"),
)
orders = st.builds(VersionReference, st.none() | small, st.none() | small, small)
tags = st.sampled_from(['"1"', '"2.0.1"', 'W/"1.0.1"', '"3.1.3", "1.2.2"', "*", "2.1.1", ""])
knowns = st.builds(StoredKey, st.none() | entries, st.booleans(), st.none() | entries, small, st.none() | small)
statuses = st.builds(PartitionStatus, st.sampled_from(Role), small)
conditions = st.builds(Conditions, st.none() | tags, st.none() | orders, st.none() | orders, st.none() | small)


def kind(known: StoredKey, partition_status: PartitionStatus = OWNER, wanted: Conditions = NO_CONDITIONS) -> str:
    found = decide(known, partition_status, wanted)
    return found.kind if isinstance(found, Problem) else "unchanged" if found.unchanged else "found"


@given(knowns, statuses, conditions)
def test_only_a_complete_instance_answers_from_the_store(
    known: StoredKey, partition_status: PartitionStatus, wanted: Conditions
) -> None:
    found = decide(known, partition_status, wanted)
    if partition_status.role not in (Role.OWNER, Role.STANDBY):
        assert isinstance(found, Problem)
        assert found.kind == ("elsewhere" if partition_status.role is Role.ELSEWHERE else "catching_up")


@given(knowns, statuses, conditions)
def test_an_answer_is_never_older_than_min_version(
    known: StoredKey, partition_status: PartitionStatus, wanted: Conditions
) -> None:
    found = decide(known, partition_status, wanted)
    if isinstance(found, FoundEntry) and wanted.at_least:
        assert known.latest is not None
        named = zip(wanted.at_least, known.latest.order, strict=True)
        assert known.latest.order >= tuple(latest if part is None else part for part, latest in named)


@given(knowns, statuses, conditions)
def test_an_answer_has_merged_the_requested_event(
    known: StoredKey, partition_status: PartitionStatus, wanted: Conditions
) -> None:
    found = decide(known, partition_status, wanted)
    if isinstance(found, FoundEntry) and wanted.event_offset is not None:
        assert known.event_offset is not None
        assert known.event_offset >= wanted.event_offset


@pytest.mark.parametrize(("merged", "expected"), [(None, "behind"), (6, "behind"), (7, "found")])
def test_an_entry_without_the_requested_event_is_behind(merged: int | None, expected: str) -> None:
    assert kind(SEEN._replace(event_offset=merged), wanted=Conditions(event_offset=7)) == expected


@given(knowns, statuses, conditions)
def test_an_answer_is_the_requested_entry_and_not_expired(
    known: StoredKey, partition_status: PartitionStatus, wanted: Conditions
) -> None:
    found = decide(known, partition_status, wanted)
    if isinstance(found, FoundEntry):
        assert found.entry is known.requested
        assert known.latest is not None
        assert not known.is_expired
    if isinstance(found, FoundEntry) and found.unchanged:
        assert wanted.none_match is not None
        assert "*" in wanted.none_match or f'"{found.entry.tag}"' in wanted.none_match


@given(knowns, statuses, conditions)
def test_temporary_problems_have_retry_after(
    known: StoredKey, partition_status: PartitionStatus, wanted: Conditions
) -> None:
    found = decide(known, partition_status, wanted)
    if isinstance(found, Problem):
        assert (found.status == 503) == (found.retry_after is not None)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (SEEN, "found"),
        (SEEN._replace(latest=None, requested=None), "never_seen"),
        (SEEN._replace(is_expired=True), "expired"),
        (SEEN._replace(requested=None), "version_not_kept"),
    ],
)
def test_never_seen_expired_and_not_kept_differ(known: StoredKey, expected: str) -> None:
    assert kind(known) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (VersionReference(None, None, 5), "found"),
        (VersionReference(None, None, 6), "behind"),
        (VersionReference(1000, None, 5), "found"),
        (VersionReference(1000, None, 6), "behind"),
        (VersionReference(999, None, 6), "found"),
        (VersionReference(1001, None, 1), "behind"),
        (VersionReference(1000, 70, 5), "found"),
        (VersionReference(1000, 69, 6), "found"),
        (VersionReference(1000, 71, 1), "behind"),
        (VersionReference(999, 71, 6), "found"),
    ],
)
def test_min_version_compares_window_epoch_and_version(wanted: VersionReference, expected: str) -> None:
    assert kind(SEEN, wanted=Conditions(at_least=wanted)) == expected
    gone = kind(SEEN._replace(latest=None, requested=None), wanted=Conditions(at_least=wanted))
    assert gone == "behind", "the version exists, because the client has seen it: this instance has not read it yet"


def test_a_reader_can_wait_for_a_later_window_while_the_earlier_one_is_expired() -> None:
    assert kind(SEEN._replace(is_expired=True), wanted=Conditions(at_least=VersionReference(1001, 70, 1))) == "behind"
    assert kind(SEEN._replace(is_expired=True), wanted=Conditions(at_least=VersionReference(1000, 70, 5))) == "expired"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ('"1000.70.5"', "unchanged"),
        ('W/"1000.70.5"', "unchanged"),
        ('"1000.71.5"', "found"),
        ('"1", "1000.70.5"', "unchanged"),
        ("*", "unchanged"),
        ('"1000.70.4"', "found"),
        ("1000.70.5", "found"),
    ],
)
def test_if_none_match_compares_the_tag(named: str, expected: str) -> None:
    assert kind(SEEN, wanted=Conditions(none_match=named)) == expected


def test_the_oldest_remembered_window_is_reported() -> None:
    found = decide(
        StoredKey(None, is_expired=False, requested=None, remembered_since=1_700_000_000_000), OWNER, NO_CONDITIONS
    )
    assert isinstance(found, Problem)
    assert found.facts == {"remembered_since": "2023-11-14T22:13:20.000Z"}


@given(st.integers(-(2**63), 2**63))
def test_any_time_can_be_formatted(milliseconds: int) -> None:
    assert iso(milliseconds).endswith("Z")
