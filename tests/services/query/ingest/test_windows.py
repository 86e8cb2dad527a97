"""Two windows of one device on the topic of snapshots, which the broker compacts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import orjson
import pytest

from contracts.records.named_states import named
from contracts.wire.window_key import window_key
from tests.services.query.fleet import START, application, snapshot
from tests.services.query.ingest.ingesting import COMPACTED, Topic, compacted, ingesting, until

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.model.named_state import NamedState
    from contracts.wire import Snapshot
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

NEWER = timedelta(minutes=10)


@pytest.fixture
def state(topics_prefix: str) -> NamedState:
    """Give the state of the application's snapshots."""
    return named(application(topics_prefix))["cars"]


@pytest.fixture
def table(broker: EmbeddedBroker, state: NamedState) -> Topic:
    """Give its topic, which the broker compacts as soon as possible."""
    return Topic(broker.bootstrap, state.topic, COMPACTED, state.partitions)


def record(one: Snapshot) -> tuple[bytes, bytes]:
    """Return the key and value of a snapshot as the job writes it."""
    return window_key(one.device_id, one.first_seen), one.encode()


async def test_a_rebuilt_store_has_the_newer_window_even_if_the_older_one_was_written_last(
    table: Topic, state: NamedState, tmp_path: Path
) -> None:
    table.write(*(record(snapshot("d", version, NEWER)) for version in range(1, 4)))
    table.write(*(record(snapshot("d", version)) for version in range(7, 10)))  # late feedback of the older window
    await compacted(table, 2)
    async with ingesting(table, state, tmp_path, 0) as running:
        await running.caught_up(0)
        found = running.store.get("d")
        assert found
        assert orjson.loads(found.value) == orjson.loads(snapshot("d", 3, NEWER).encode())
        assert running.listener.versions("d") == [3]


async def test_a_tombstone_removes_only_its_window(table: Topic, state: NamedState, tmp_path: Path) -> None:
    async with ingesting(table, state, tmp_path, 0) as running:
        table.write(record(snapshot("d", 3, NEWER)), (window_key("d", START), None))
        await running.caught_up(0)
        assert running.version("d") == 3
        table.write((window_key("d", START + NEWER), None))
        await until(lambda: running.version("d") is None)
