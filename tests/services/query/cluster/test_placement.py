from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.query.cluster.placement import rank_instances, select_owner, select_standbys
from services.query.store import StatePartition

names = st.sets(st.text("abcdefgh", min_size=1, max_size=3), max_size=8)
parts = st.builds(StatePartition, st.sampled_from(["flights", "airports"]), st.integers(0, 63))


@given(parts, names, st.integers(1, 3), st.data())
def test_a_partition_has_as_many_replicas_as_possible(
    partition: StatePartition, there: set[str], replicas: int, data: st.DataObject
) -> None:
    owner = data.draw(st.sampled_from(sorted(there))) if there else None
    standbys = select_standbys(partition, owner, there, replicas)
    assert len(standbys) == max(0, min(replicas - 1, len(there) - 1))
    assert set(standbys) <= there - {owner}


@given(parts, names, st.text("xyz", min_size=1))
def test_an_instance_that_joins_does_not_change_the_order_of_the_others(
    partition: StatePartition, there: set[str], joins: str
) -> None:
    assert [name for name in rank_instances(partition, there | {joins}) if name != joins] == rank_instances(
        partition, there
    )


@given(parts, names, names)
def test_the_owner_is_selected_when_ready_and_else_the_first_standby(
    partition: StatePartition, ready: set[str], assigned: set[str]
) -> None:
    chosen = select_owner(partition, ready, assigned)
    best = ready & assigned or ready
    assert chosen == (rank_instances(partition, best)[0] if best else None)


def test_replicas_are_spread_over_all_instances() -> None:
    there = {"a", "b", "c", "d"}
    chosen = [select_standbys(StatePartition("flights", number), None, there, 2)[0] for number in range(400)]
    assert all(60 < chosen.count(name) < 140 for name in there)
