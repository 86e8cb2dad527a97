"""The stored snapshots of a partition, against a dictionary."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.wire import Order, Snapshot
from services.alerts import present_states
from services.alerts.errors import StatesNotStoredError
from services.alerts.present_states import Position, PresentStates, Window, position_of

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEYS = ("a", "ab", "a\0", "ä", "a\0\0\0\0\0\0\0\0\0", "b")
WINDOWS = st.tuples(st.sampled_from(KEYS), st.integers(-3, 3).map(lambda hours: NOON + timedelta(hours=hours)))
CHANGES = st.tuples(WINDOWS, st.tuples(st.integers(0, 1), st.integers(1, 5)), st.booleans())


def _snapshot(window: Window, order: Order) -> Snapshot:
    return Snapshot(device_id=window[0], first_seen=window[1], epoch=order[0], version=order[1], as_of=NOON, state={})


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(CHANGES)),
    st.integers(1, 5),
    st.sampled_from(("", *KEYS)),
    st.sampled_from(("", "b", "\0")),
    st.integers(-4, 4),
)
def test_it_has_the_newest_snapshot_of_each_window(
    batches: list[list[tuple[Window, Order, bool]]], limit: int, prefix: str, ending: str, hours: int
) -> None:
    states, expected = PresentStates(), dict[Window, Order]()
    for batch in batches:
        states.change(
            (position_of(one), order, None if gone else _snapshot(one, order).encode()) for one, order, gone in batch
        )
        for window, order, gone in batch:
            if gone:
                expected.pop(window, None)
            elif order > expected.get(window, (-1, 0)):
                expected[window] = order
    assert states.count() == len(expected)
    assert {window: states.order(position_of(window)) for window in expected} == expected
    for key in KEYS:
        assert set(states.of_key(key)) == {position_of(window) for window in expected if window[0] == key}
    paged, position, ended = list[Position](), None, False
    while not ended:
        page = states.page(prefix, lambda key: key.startswith(prefix) and key.endswith(ending), position, limit)
        paged += page.positions
        position, ended = page.last, page.last is None
    assert len(paged) == len(set(paged))
    assert set(paged) == {position_of(one) for one in expected if one[0].startswith(prefix) and one[0].endswith(ending)}
    time = NOON + timedelta(hours=hours)
    oldest = sorted((one for one in expected if one[1] < time - HOUR), key=lambda one: one[1])
    found = states.older_than(HOUR, time, limit)
    assert [at[-8:] for at in found] == [position_of(one)[-8:] for one in oldest[:limit]]
    assert set(found) <= set(map(position_of, oldest))
    states.close()


def test_a_time_that_is_as_early_as_can_be_has_no_older_window() -> None:
    """A replay takes it from its first snapshot."""
    states = PresentStates()
    states.change([(position_of(("a", NOON)), (0, 1), _snapshot(("a", NOON), (0, 1)).encode())])
    assert states.older_than(HOUR, datetime.min.replace(tzinfo=UTC), 1) == []
    states.close()


def test_a_full_disk_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present_states, "MAP_SIZE", 1 << 16)
    states = PresentStates()
    value = _snapshot(("a", NOON), (1, 2)).encode()
    with pytest.raises(StatesNotStoredError, match="TMPDIR"):
        states.change((position_of((f"{number:0500}", NOON)), (1, 1), value) for number in range(1000))
    states.close()


def test_a_window_that_is_unknown_has_no_snapshot() -> None:
    states = PresentStates()
    unknown, known = position_of(("b", NOON)), position_of(("a", NOON))
    assert (list(states.get([known])), states.order(known)) == ([(known, None)], None)
    states.change([(known, (1, 2), _snapshot(("a", NOON), (1, 2)).encode())])
    assert list(states.get([unknown, known])) == [(unknown, None), (known, _snapshot(("a", NOON), (1, 2)))]
    states.close()
