from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.live.pairing import ABANDONED_S, Paired, Pairing

if TYPE_CHECKING:
    import random

LIFE = ("N1", datetime(2013, 1, 1, tzinfo=UTC))
OTHER = ("N2", datetime(2013, 1, 1, tzinfo=UTC))


def close(found: Paired | None, latency: float | None, since: float | None) -> bool:
    assert found is not None
    return bool(found.latency == pytest.approx(latency) and found.since_last_event == pytest.approx(since))


@given(
    st.lists(
        st.tuples(st.sampled_from([LIFE, OTHER]), st.floats(0, 5), st.floats(0, 5), st.booleans(), st.booleans()),
        max_size=40,
    )
)
def test_each_version_has_the_latency_of_its_record(
    records: list[tuple[tuple[str, datetime], float, float, bool, bool]],
) -> None:
    """A stream as the job makes it: one snapshot per new record, in order; some records and snapshots come twice."""
    pairing, now, versions = Pairing(100), 0.0, {LIFE: 0, OTHER: 0}
    for number, (life, gap, latency, twice, republished) in enumerate(records):
        now += gap
        assert pairing.record(life, str(number), now, is_event=True)
        if twice:
            assert not pairing.record(life, str(number), now, is_event=True)
        now += latency
        versions[life] += 1
        assert close(pairing.snapshot(life, (1, versions[life]), now), latency, latency)
        if republished:
            assert pairing.snapshot(life, (1, versions[life]), now + 1) is None
    assert pairing.waiting == 0


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_records_that_pile_up_are_paired_in_their_order(count: int, chance: random.Random) -> None:
    pairing, arrivals, versions = Pairing(100), list[float](), 0
    for now in range(2 * count):
        if len(arrivals) < count and (versions == len(arrivals) or chance.random() < 0.5):
            pairing.record(LIFE, str(now), now, is_event=False)
            arrivals.append(now)
        else:
            assert close(pairing.snapshot(LIFE, (1, versions + 1), now), now - arrivals[versions], None)
            versions += 1
        assert pairing.waiting == len(arrivals) - versions


def test_the_first_version_known_of_an_older_life_has_no_latency() -> None:
    pairing = Pairing(100)
    assert pairing.snapshot(LIFE, (1, 7), 10) == Paired(None, None)
    pairing.record(LIFE, "a", 11, is_event=True)
    assert pairing.snapshot(LIFE, (1, 8), 12) == Paired(1, 1)


def test_a_snapshot_that_overtakes_its_record_does_not_shift_the_others() -> None:
    pairing = Pairing(100)
    assert pairing.snapshot(LIFE, (1, 1), 10) == Paired(None, None)
    pairing.record(LIFE, "a", 10, is_event=True)
    pairing.record(LIFE, "b", 20, is_event=True)
    assert pairing.snapshot(LIFE, (1, 2), 23) == Paired(3, 3)


def test_a_version_that_was_left_out_takes_its_record_along() -> None:
    pairing = Pairing(100)
    for at, name in enumerate("abc"):
        pairing.record(LIFE, name, at, is_event=False)
    assert pairing.snapshot(LIFE, (1, 1), 10) == Paired(10, None)
    assert pairing.snapshot(LIFE, (1, 3), 10) == Paired(8, None)


def test_since_the_last_event_is_unknown_while_one_is_under_way() -> None:
    pairing = Pairing(100)
    pairing.record(LIFE, "a", 0, is_event=True)
    pairing.record(LIFE, "b", 1, is_event=True)
    assert pairing.snapshot(LIFE, (1, 1), 5) == Paired(5, None)
    assert pairing.snapshot(LIFE, (1, 2), 6) == Paired(5, 5)
    pairing.record(LIFE, "c", 7, is_event=False)
    assert pairing.snapshot(LIFE, (1, 3), 8) == Paired(1, 7)


def test_once_settled_the_last_event_is_not_asked_for_again() -> None:
    pairing = Pairing(100)
    pairing.record(LIFE, "a", 0, is_event=True)
    pairing.snapshot(LIFE, (1, 1), 5)
    pairing.settled(LIFE)
    pairing.record(LIFE, "b", 7, is_event=False)
    assert pairing.snapshot(LIFE, (1, 2), 8) == Paired(1, None)


def test_a_record_that_never_gets_a_snapshot_is_given_up() -> None:
    pairing = Pairing(100)
    pairing.record(LIFE, "refused", 0, is_event=True)
    pairing.record(LIFE, "a", ABANDONED_S + 1, is_event=True)
    assert pairing.snapshot(LIFE, (1, 1), ABANDONED_S + 2) == Paired(1, 1)
    assert pairing.waiting == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans())))
def test_memory_is_bounded_and_nothing_waits_for_a_forgotten_life(steps: list[tuple[int, bool]]) -> None:
    pairing = Pairing(3)
    for now, (device, is_record) in enumerate(steps):
        life = (str(device), LIFE[1])
        if is_record:
            pairing.record(life, str(now), now, is_event=True)
        else:
            pairing.snapshot(life, (1, now + 1), now)
    kept = pairing._tracks  # noqa: SLF001  # what is bounded is inside
    assert len(kept) <= 3
    assert pairing.waiting == sum(len(track.waiting) for track in kept.values())
