from __future__ import annotations

import pytest

from contracts.wire.copy_header import NAME, copied_headers, is_copy_for_more


def test_a_copy_has_the_other_headers_and_the_last_number() -> None:
    headers = copied_headers(copied_headers((("n", "1"), ("n", None)), 4), 6)
    assert headers == (("n", "1"), ("n", None), (NAME, b"6"))


@pytest.mark.parametrize(
    ("headers", "is_larger"),
    [
        ((), False),
        (copied_headers((), 3), False),
        (copied_headers((), 4), True),
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
    assert is_copy_for_more(headers, 3) == is_larger
