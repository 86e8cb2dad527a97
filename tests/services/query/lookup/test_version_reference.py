from __future__ import annotations

import pytest

from services.query.lookup.version_reference import parse_tag
from services.query.store import Entry


@pytest.mark.parametrize(
    ("window_start", "epoch", "version"),
    [
        (0, 0, 7),
        (1_763_776_447_000, 0, 3),
        (1_763_776_447_000, 1_763_776_400_000, 3),
        (0, 5, 1),
        (0, 0, (1 << 63) - 1),
        (-5, 0, 1),
    ],
)
def test_the_tag_of_any_entry_is_parsed_back(window_start: int, epoch: int, version: int) -> None:
    entry = Entry(window_start, epoch, version, 0, 0, 0, b"{}")
    assert parse_tag(entry.tag) == entry.order


@pytest.mark.parametrize("tag", ["", "a", "1.2.3.4", "1..3", "1.", ".1", "1" * 20])
def test_an_invalid_tag_has_no_order(tag: str) -> None:
    assert parse_tag(tag) is None


@pytest.mark.parametrize(
    "tag", ["-62135596800001.0.1", f"{1 << 63}.0.1", f"0.{1 << 63}.1", f"0.{-1 << 63}.1", f"{1 << 63}"]
)
def test_a_tag_that_no_record_can_have_has_no_order(tag: str) -> None:
    assert parse_tag(tag) is None


def test_a_tag_of_an_earlier_release_has_epoch_zero() -> None:
    assert parse_tag("1763776447000.3") == (1_763_776_447_000, 0, 3)
