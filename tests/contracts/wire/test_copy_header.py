from __future__ import annotations

import pytest

from contracts.wire.copy_header import NAME, is_of_larger_layout, with_layout


def test_a_copy_has_the_other_headers_and_the_last_number() -> None:
    headers = with_layout(with_layout((("n", "1"), ("n", None)), 4), 6)
    assert headers == (("n", "1"), ("n", None), (NAME, b"6"))


@pytest.mark.parametrize(
    ("headers", "is_larger"),
    [
        ((), False),
        (with_layout((), 3), False),
        (with_layout((), 4), True),
        (((NAME, "12"),), True),
        (((NAME, None),), False),
        (((NAME, b"\xff"), ("other", b"9")), False),
        (((NAME, "\u0664"),), False),
        (((NAME, b"9" * 5000),), False),
        (((NAME, b"-4"),), False),
    ],
)
def test_a_copy_for_more_partitions_is_recognized(
    headers: tuple[tuple[str, bytes | str | None], ...], *, is_larger: bool
) -> None:
    assert is_of_larger_layout(headers, 3) == is_larger
