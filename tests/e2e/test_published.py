from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.e2e.published import Published

WINDOW = ("N1", datetime(2013, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("versions", "complete", "in_order", "rewinds"),
    [
        ([1, 2, 3], True, True, 0),
        ([1, 2, 2, 3], True, True, 1),
        ([1, 2, 3, 1, 2, 3, 4, 3, 4], True, True, 2),
        ([1, 3], False, False, 0),
        ([1, 1, 3, 3], False, False, 2),
        ([2, 3], False, False, 0),
        ([1, 3, 2], True, False, 1),
        ([1, 2, 3, 1, 3], True, False, 1),
    ],
)
def test_gaps_disorder_and_rewinds_are_found(versions: list[int], complete: bool, in_order: bool, rewinds: int) -> None:  # noqa: FBT001
    published = Published()
    published.add(("N2", WINDOW[1]), 1)
    for version in versions:
        published.add(WINDOW, version)
    assert published.incomplete() == (set() if complete else {WINDOW})
    assert published.skips() == (set() if in_order else {WINDOW})
    assert published.rewinds() == rewinds
