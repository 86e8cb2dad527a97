"""The windows that rules may concern, against a look at each key."""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import AlertRule
from contracts.alerts.evaluation import Rules
from contracts.records.tables import TableRow
from contracts.wire import Snapshot
from services.alerts import sweep
from services.alerts.present_states import PresentStates, position_of

AT = datetime(2026, 5, 1, tzinfo=UTC)
TEXTS = st.text("ab\0*?[]!-", min_size=1, max_size=4)


@settings(deadline=None, max_examples=200)
@given(st.sets(TEXTS, max_size=8), st.lists(TEXTS, max_size=4), st.booleans())
def test_each_key_of_the_rules_is_visited_once(keys: set[str], patterns: list[str], names_all: bool) -> None:  # noqa: FBT001
    states = PresentStates()
    snapshots = (Snapshot(device_id=key, first_seen=AT, version=1, as_of=AT, state={}) for key in keys)
    states.change((position_of(snapshot.window), snapshot.order, snapshot.encode()) for snapshot in snapshots)
    rules = Rules({str(number): TableRow(number, AlertRule(keys=one), None, AT) for number, one in enumerate(patterns)})
    only = [str(number) for number in range(len(patterns)) if names_all or number % 2]
    with patch.object(sweep, "SLICE", 2):
        slices = list(sweep.concerned(states, (), rules, None if names_all else only))
    states.close()
    chosen = [AlertRule(keys=patterns[int(name)]) for name in only]
    exact = [key for key in keys if any(one.keys == key and not one.is_pattern for one in chosen)]
    matched = [key for key in keys if any(one.is_pattern and fnmatchcase(key, one.keys) for one in chosen)]
    assert sorted(one for found in slices for one in found) == sorted(position_of((key, AT)) for key in exact + matched)
    assert max(map(len, slices), default=0) <= 2
