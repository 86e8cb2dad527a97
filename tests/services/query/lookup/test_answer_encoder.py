"""A cached template is not used after the role or lag of the instance has changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.query.cluster import PartitionStatus, Role
from services.query.lookup.answer_encoder import AnswerEncoder
from services.query.store import Entry
from tests.services.query.in_memory import NOW, a_state

STATUSES = st.tuples(st.integers(0, 2), st.builds(PartitionStatus, st.sampled_from(Role), st.integers(0, 3)))


@given(statuses=st.lists(STATUSES, min_size=1, max_size=20))
def test_an_answer_has_the_current_role_and_lag(statuses: list[tuple[int, PartitionStatus]]) -> None:
    state = a_state()
    encoder = AnswerEncoder(state, "one")
    for partition, partition_status in statuses:
        entry = Entry(0, 0, 1, NOW, partition, 7, b"{}")
        assert encoder.encode("key", entry, partition_status, NOW) == AnswerEncoder(state, "one").encode(
            "key", entry, partition_status, NOW
        )
