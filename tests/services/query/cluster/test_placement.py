from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.query.cluster.placement import first, ranked, standbys
from services.query.ingest.ingestion import Part

names = st.sets(st.text("abcdefgh", min_size=1, max_size=3), max_size=8)
parts = st.builds(Part, st.sampled_from(["flights", "airports"]), st.integers(0, 63))


@given(parts, names, st.integers(1, 3), st.data())
def test_a_partition_has_as_many_copies_as_it_can(
    part: Part, there: set[str], replicas: int, data: st.DataObject
) -> None:
    owner = data.draw(st.sampled_from(sorted(there))) if there else None
    copies = standbys(part, owner, there, replicas)
    assert len(copies) == max(0, min(replicas - 1, len(there) - 1))
    assert set(copies) <= there - {owner}


@given(parts, names, st.text("xyz", min_size=1))
def test_who_joins_changes_nobody_elses_order(part: Part, there: set[str], joins: str) -> None:
    assert [name for name in ranked(part, there | {joins}) if name != joins] == ranked(part, there)


@given(parts, names, names)
def test_the_owner_is_first_when_it_is_ready_and_else_the_first_standby(
    part: Part, ready: set[str], assigned: set[str]
) -> None:
    chosen = first(part, ready, assigned)
    best = ready & assigned or ready
    assert chosen == (ranked(part, best)[0] if best else None)


def test_copies_are_spread_over_all() -> None:
    there = {"a", "b", "c", "d"}
    chosen = [standbys(Part("flights", number), None, there, 2)[0] for number in range(400)]
    assert all(60 < chosen.count(name) < 140 for name in there)
