"""A batch returns for each key what a single read returns."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.cluster import PartitionStatus, Role
from services.query.lookup.decision import NO_CONDITIONS
from services.query.lookup.problems import Problem
from services.query.lookup.state_reader import LookupResult, ReadResult, StateReader, WindowsRequest
from tests.services.query.in_memory import (
    NOW,
    MemoryRouting,
    ScratchStore,
    a_state,
    close_scratch_stores,
    dependencies_of,
)
from tests.services.query.windowed import DEPARTURES, departures

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

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


READS: dict[str, Callable[[StateReader], ReadResult[Any]]] = {
    "get": lambda reader: reader.read("JFK", NO_CONDITIONS),
    "versions": lambda reader: reader.read_versions("JFK")[0],
    "get_many": lambda reader: reader.read_many(["JFK"])[0],
    "windows": lambda reader: reader.read_windows("JFK", WindowsRequest(None, None, newest_first=True, limit=1)),
}
"""Reads, by the method of the store that they call."""


@pytest.mark.parametrize("method", READS)
def test_a_partition_that_moves_during_a_read_is_not_answered(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    routing = MemoryRouting()
    with departures(tmp_path, routing=routing) as (dependencies, written):
        written.put("JFK", 0)
        read = getattr(written.store, method)

        def read_and_move(*arguments: Any, **named: Any) -> Any:
            found = read(*arguments, **named)
            routing.own = PartitionStatus(Role.ELSEWHERE, 0)
            return found

        monkeypatch.setattr(written.store, method, read_and_move)
        assert READS[method](StateReader(DEPARTURES, dependencies)).belongs_to_peer
