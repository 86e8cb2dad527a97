"""Partitions that are cleared in steps, with a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.query.store import Entry, Update
from services.query.store.store import Store
from services.query.store.write_batch import CLEAR_SIZE
from tests.services.query.ingest.ingesting import Topic, ingesting, until, value

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.model.named_state import NamedState

pytestmark = pytest.mark.kafka


def snapshot(key: str, partition: int, version: int) -> Update:
    """Return the update of a record."""
    return Update(key, partition, 0, Entry(0, 0, version, 0, partition, 0, value(version)))


async def test_a_partition_half_cleared_at_a_kill_is_read_from_its_beginning(
    topic: Topic, state: NamedState, tmp_path: Path
) -> None:
    topic.write(("a", value(1)), ("b", value(1)))
    topic.write(("other", value(1)), partition=1)
    left = Store(tmp_path, state, "boot")
    left.apply([snapshot(f"gone{number}", 0, 1) for number in range(2 * CLEAR_SIZE)], {0: 1})
    assert not left.clear_partition(0)
    left.close()
    async with ingesting(topic, state, tmp_path) as running:
        await running.caught_up()
        assert running.store.key_count() == 3
        assert [running.version(key) for key in ("a", "b", "other", "gone1")] == [1, 1, 1, None]


async def test_a_partition_is_cleared_while_others_are_read(
    topic: Topic, state: NamedState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Store(tmp_path, state, "boot")
    left.apply([snapshot(f"gone{number}", 0, 1) for number in range(2 * CLEAR_SIZE)], {0: 1})
    assert not left.clear_partition(0)
    left.close()
    clear_partition, can_clear = Store.clear_partition, False
    monkeypatch.setattr(
        Store, "clear_partition", lambda store, partition: can_clear and clear_partition(store, partition)
    )
    async with ingesting(topic, state, tmp_path) as running:
        topic.write(("other", value(1)), partition=1)
        await until(lambda: running.version("other") == 1)
        assert running.ingestion.progress(running.partition(0)) is None
        running.ingestion.unassign(running.partition(0))
        topic.write(("other", value(2)), partition=1)
        await until(lambda: running.version("other") == 2)
        can_clear = True
        topic.write(("other", value(3)), partition=1)
        await until(lambda: running.version("other") == 3)
        assert running.store.is_clear_pending(0), "it is not assigned"
        running.ingestion.assign(running.partition(0))
        await running.caught_up()
        assert running.store.key_count() == 1
