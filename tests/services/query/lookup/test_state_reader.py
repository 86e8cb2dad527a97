"""A batch returns for each key what a single read returns."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.query.cluster import PartitionStatus, Role
from services.query.lookup.decision import NO_CONDITIONS
from services.query.lookup.problems import Problem
from services.query.lookup.state_reader import LookupResult, StateReader
from tests.services.query.in_memory import (
    NOW,
    MemoryRouting,
    ScratchStore,
    a_state,
    close_scratch_stores,
    dependencies_of,
)

HOUR = 3_600_000
KEYS = tuple(f'key{number} "é' for number in range(4))
TIMES = st.integers(NOW - 2 * HOUR, NOW + HOUR)
ENTRIES = st.fixed_dictionaries(
    {
        "window_start": st.sampled_from([0, NOW - HOUR - 1, NOW - HOUR, NOW]),
        "version": st.integers(0, 2**63 - 1),
        "event_time": TIMES,
        "partition": st.integers(0, 3),
        "offset": st.integers(0, 2**40),
        "value": st.sampled_from([b"{}", b'{"a":"100%d"}']),
    }
)
STATUSES = st.builds(PartitionStatus, st.sampled_from(Role), st.integers(0, 2**40))


@given(
    entries=st.dictionaries(st.sampled_from(KEYS), ENTRIES, min_size=2),
    statuses=st.lists(STATUSES, min_size=4, max_size=4),
    keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=8),
    has_lifetime=st.booleans(),
    misplaced=st.booleans(),
)
def test_a_batch_equals_single_reads_for_any_store_and_roles(
    entries: dict[str, dict[str, int]],
    statuses: list[PartitionStatus],
    keys: list[str],
    *,
    has_lifetime: bool,
    misplaced: bool,
) -> None:
    close_scratch_stores()
    state, routing = a_state(lifetime=timedelta(milliseconds=HOUR) if has_lifetime else None), MemoryRouting()
    routing.others = dict(enumerate(statuses))
    dependencies = replace(dependencies_of(state, routing=routing), misplaced={"flights": int(misplaced)})
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    for key, facts in entries.items():
        store.put(key, **facts)
    store.advance_watermark(NOW)
    reader = StateReader(state, dependencies)
    assert reader.encode_many(keys, NOW) == [_alone(reader, key) for key in keys]


def _alone(reader: StateReader, key: str) -> bytes | LookupResult:
    found = reader.read(key, NO_CONDITIONS)
    if isinstance(found.outcome, Problem):
        return found
    return reader.encoder.encode(key, found.outcome.entry, found.partition_status, NOW)
