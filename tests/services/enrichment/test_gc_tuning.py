"""The frequency of garbage collections in a worker."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from services.enrichment.service import tune_gc

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.freeze()  # as tests/conftest.py does it


class Cycle:
    """Only the garbage collector frees it."""

    found = 0

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        Cycle.found += 1


@pytest.mark.usefixtures("_as_before")
def test_existing_objects_are_collected_once_and_then_frozen() -> None:
    Cycle.found = 0
    Cycle()
    kept = Cycle()
    tune_gc()
    assert Cycle.found == 1
    del kept
    gc.collect()
    assert Cycle.found == 1, "frozen objects are not collected"


@pytest.mark.usefixtures("_as_before")
def test_the_objects_of_a_thousand_calls_start_no_collection() -> None:
    tune_gc()
    collections = gc.get_stats()[0]["collections"]
    kept: list[list[int]] = [[] for _ in range(200_000)]
    assert gc.get_stats()[0]["collections"] == collections
    kept += [[] for _ in range(200_000)]
    assert gc.get_stats()[0]["collections"] > collections, "it does collect"
