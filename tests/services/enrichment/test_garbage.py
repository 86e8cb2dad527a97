"""How often a worker looks for garbage."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from services.enrichment.garbage import seldom

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Circle:
    """Only a look for garbage finds it."""

    found = 0

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        Circle.found += 1


@pytest.mark.usefixtures("_as_before")
def test_what_was_there_is_found_once_and_never_looked_at_again() -> None:
    Circle.found = 0
    Circle()
    kept = Circle()
    seldom()
    assert Circle.found == 1
    del kept
    gc.collect()
    assert Circle.found == 1, "what is frozen is not looked at"


@pytest.mark.usefixtures("_as_before")
def test_the_objects_of_a_thousand_calls_are_no_reason_to_look() -> None:
    seldom()
    looks = gc.get_stats()[0]["collections"]
    kept: list[list[int]] = [[] for _ in range(200_000)]
    assert gc.get_stats()[0]["collections"] == looks
    kept += [[] for _ in range(200_000)]
    assert gc.get_stats()[0]["collections"] > looks, "it does look"
