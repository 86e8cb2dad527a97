"""Partitions that are forgotten a piece at a time, and a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.query.store.entry import Entry
from services.query.store.lmdb_store import LmdbStore
from services.query.store.store import Update
from services.query.store.write_batch import PIECE
from tests.services.query.ingest.ingesting import Topic, following, until, value

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.model.named_state import NamedState

pytestmark = pytest.mark.kafka


def snapshot(key: str, partition: int, version: int) -> Update:
    """A record, read."""
    return Update(key, partition, 0, Entry(0, 0, version, 0, partition, 0, value(version)))


async def test_a_partition_that_was_being_forgotten_at_a_kill_is_read_from_its_beginning(
    topic: Topic, state: NamedState, tmp_path: Path
) -> None:
    topic.write(("a", value(1)), ("b", value(1)))
    topic.write(("other", value(1)), partition=1)
    left = LmdbStore(tmp_path, state, "boot")
    left.apply([snapshot(f"gone{number}", 0, 1) for number in range(2 * PIECE)], {0: 1})
    assert not left.forget(0)
    left.close()
    async with following(topic, state, tmp_path) as running:
        await running.caught_up()
        assert running.store.keys() == 3
        assert [running.version(key) for key in ("a", "b", "other", "gone1")] == [1, 1, 1, None]


async def test_one_partition_is_forgotten_while_others_are_read(
    topic: Topic, state: NamedState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = LmdbStore(tmp_path, state, "boot")
    left.apply([snapshot(f"gone{number}", 0, 1) for number in range(2 * PIECE)], {0: 1})
    assert not left.forget(0)
    left.close()
    forget, ends = LmdbStore.forget, False
    monkeypatch.setattr(LmdbStore, "forget", lambda store, partition: ends and forget(store, partition))
    async with following(topic, state, tmp_path) as running:
        topic.write(("other", value(1)), partition=1)
        await until(lambda: running.version("other") == 1)
        assert running.follower.progress(running.part(0)) is None
        running.follower.leave(running.part(0))
        topic.write(("other", value(2)), partition=1)
        await until(lambda: running.version("other") == 2)
        ends = True
        topic.write(("other", value(3)), partition=1)
        await until(lambda: running.version("other") == 3)
        assert running.store.half_forgotten(0), "nobody follows it"
        running.follower.follow(running.part(0))
        await running.caught_up()
        assert running.store.keys() == 1
