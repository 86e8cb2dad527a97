"""Keys that were written with another partitioner, or before partitions were added."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contracts.wire.partition import partition
from services.query.ingest.misplaced import SAMPLE_EVERY, MisplacedKeys
from services.query.store import Entry, Update
from tests.services.query.in_memory import ScratchStore, a_state

if TYPE_CHECKING:
    import pytest

KEYS = [f"UA{number}" for number in range(2 * SAMPLE_EVERY)]
STATES = {"flights": a_state()}


def updates(partitions: int) -> list[Update]:
    """Return the updates of a producer that partitions by this number."""
    entry = Entry(0, 0, 1, 0, 0, 0, b"{}")
    return [Update(key, partition(key.encode(), partitions), 0, entry) for key in KEYS]


def test_keys_in_the_right_partition_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    found = MisplacedKeys(STATES, {"flights": ScratchStore()})
    found.check("flights", updates(4))
    assert found.counts == {"flights": 0}
    assert not caplog.records


def test_misplaced_keys_are_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    found = MisplacedKeys(STATES, {"flights": ScratchStore()})
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            found.check("flights", updates(1))
    expected = sum(partition(key.encode(), 4) != 0 for key in KEYS[::SAMPLE_EVERY])
    assert expected
    assert found.counts == {"flights": 3 * expected}
    (record,) = caplog.records
    assert "murmur2_random" in str(record.__dict__["facts"])


def test_misplaced_keys_of_an_earlier_start_are_counted() -> None:
    store = ScratchStore()
    for key in KEYS[:10]:
        store.put(key, partition=0)
    found = MisplacedKeys(STATES, {"flights": store})
    assert found.counts["flights"] == sum(partition(key.encode(), 4) != 0 for key in KEYS[:10]) > 0
