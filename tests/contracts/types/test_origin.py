"""The origin of a record goes with its copies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contracts.types.origin import LATEST, PLACE, TIME, Origin

POSITIONS = st.builds("{}/{}/{}".format, st.text(min_size=1), st.integers(0), st.integers(0))
TIMES = st.integers(0, LATEST)


@given(POSITIONS, TIMES, POSITIONS, TIMES)
def test_a_copy_of_a_copy_has_the_first_origin(position: str, time: int, other_position: str, later: int) -> None:
    origin = Origin.read(position, time, {"beds": b"3"})
    assert origin == (position, time)
    copy = Origin.read(other_position, later, {"beds": b"3", **origin.headers()})
    assert copy == origin
    assert Origin.read(other_position, later, copy.headers()) == origin


def test_headers_without_a_time_leave_the_time_of_the_record() -> None:
    for headers in (
        {PLACE: b"t/0/1"},
        {PLACE: "t/0/1", TIME: "soon"},
        {PLACE: b"t/0/1", TIME: None},
        {PLACE: b"t/0/1", TIME: b"9" * 5000},
        {PLACE: b"t/0/1", TIME: b"9" * 19},
        {PLACE: b"t/0/1", TIME: b"%d" % (LATEST + 1)},
    ):
        assert Origin.read("t/0/9", 7, headers) == ("t/0/1", 7)
    assert Origin.read("t/0/9", 7, {PLACE: None, TIME: b"5"}) == ("t/0/9", 7)
