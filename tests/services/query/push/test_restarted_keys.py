"""A watch of one key whose versions start again after a tombstone, while no instance can tell its client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.services.query.in_memory import NOW
from tests.services.query.push.serving import watching
from tests.services.query.push.test_upstreams import AWAY, Pair
from tests.services.query.push.windows import relaying_to, seen, serving
from tests.services.query.windowed import HOUR, NOON, answered_at

if TYPE_CHECKING:
    from pathlib import Path

WINDOWS = "/v1/states/departures/JFK/watch"


async def test_a_key_that_started_again_at_another_instance_is_removed_first() -> None:
    pair = Pair()
    async with pair.serving():
        key = next(pair.keys(2))
        pair.change(key, 5)
        pair.remove(key)
        pair.change(key, 1)
        async with watching(pair.one, f"/v1/states/flights/{key}/watch", **{"Last-Event-ID": f"{NOW}.0.5"}) as events:
            assert [(await events.next()).event for _ in range(2)] == ["removed", "state"]
            pair.change(key, 2)
            assert (await events.next()).id == f"{NOW}.0.2"


@pytest.mark.parametrize("partition", [1, 2])
async def test_a_key_that_starts_again_while_its_partition_moves_is_sent(partition: int) -> None:
    pair = Pair()
    async with pair.serving():
        key = next(pair.keys(partition))
        pair.change(key, 5)
        async with watching(pair.one, f"/v1/states/flights/{key}/watch") as events:
            assert (await events.next()).id == f"{NOW}.0.5"
            for instance in (pair.one, pair.two):
                instance.routing.others = dict.fromkeys(range(4), AWAY)
                instance.routing.known = []
            pair.refresh()
            pair.remove(key)
            pair.change(key, 1)
            pair.share(2, 3)
            pair.refresh()
            while (event := await events.next()).event != "state":
                assert event.event == "removed"
            assert event.id == f"{NOW}.0.1"


async def test_a_lower_version_of_a_partition_that_another_instance_serves_is_not_sent() -> None:
    """As of a topic of others to which partitions were added: the present entry is not in the partition of its key."""
    pair = Pair()
    async with pair.serving():
        key = next(pair.keys(0))
        pair.one.put(key, 3, partition=2)
        async with watching(pair.one, f"/v1/states/flights/{key}/watch", **{"Last-Event-ID": f"{NOW}.0.5"}) as events:
            pair.change(key, 6)
            assert (await events.next()).id == f"{NOW}.0.6"


@pytest.mark.parametrize("is_relayed", [False, True])
async def test_the_removal_of_a_window_before_a_watch_resumes_leaves_the_key(
    tmp_path: Path, *, is_relayed: bool
) -> None:
    async with relaying_to(tmp_path) as (relaying, owner, _), serving(tmp_path / "alone") as alone:
        written, watched = (owner, relaying) if is_relayed else (alone, alone)
        for hour in (0, 1):
            written.put("JFK", hour)
        written.remove("JFK", 1)
        async with watching(watched.instance, WINDOWS, **{"Last-Event-ID": f"{NOON + HOUR}.0.1"}) as events:
            removed = await events.next()
            assert (removed.event, removed.data["window_start"]) == ("removed", answered_at(1))
            assert seen((await events.next()).data) == ("JFK", "0", 1)
