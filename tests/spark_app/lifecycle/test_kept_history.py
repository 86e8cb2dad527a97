"""What a topic still has of a history."""

from __future__ import annotations

import pytest

from spark_app.lifecycle.bootstrap import has_lost


@pytest.mark.parametrize(
    ("deleted", "read", "first", "lacks"),
    [
        (0, (), (0, 0), False),
        (0, (), (6, 0), True),
        (8, (), (3, 5), False),
        (8, (), (3, 6), True),
        (0, (6, 4), (6, 0), False),
        (0, (6, 4), (6, 5), True),
        (0, (6,), (6, 0), False),
        (0, (6,), (6, 1), True),
    ],
    ids=str,
)
def test_a_state_lacks_the_records_that_its_build_has_not_read(
    deleted: int, read: tuple[int, ...], first: tuple[int, ...], *, lacks: bool
) -> None:
    positions, offsets = ({("events", number): at for number, at in enumerate(each)} for each in (read, first))
    assert has_lost(deleted, positions, offsets) is lacks
