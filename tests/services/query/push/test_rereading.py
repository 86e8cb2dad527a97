"""A watch while its instance reads a partition from the beginning again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson
import pytest

from services.query.cluster import PartitionStatus, Role
from services.query.ingest import Restart
from services.query.lookup.authentication import ANONYMOUS
from services.query.push.event import EventKind
from services.query.push.filter import SubscriptionFilter
from services.query.store import Change, StatePartition
from tests.services.query.push.serving import Instance, eventually

if TYPE_CHECKING:
    from services.query.push.stream import Stream

KEY, OTHER = "a1", "b1"
PARTITION = 3
"""The partition of both keys."""
FILTERS = [SubscriptionFilter("flights", KEY), SubscriptionFilter("flights", None, "")]


class Rereading(Instance):
    """An instance that reads a partition from the beginning again."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: list[tuple[str, int]] = []

    def lose(self, *, is_other_topic: bool = False) -> None:
        """Lose the partition: the instance clears it, and does not answer for it."""
        self.routing.others[PARTITION] = PartitionStatus(Role.CATCHING_UP, 0)
        self.watching.restarted(Restart(StatePartition("flights", PARTITION), is_other_topic))
        while not self.store().clear_partition(PARTITION):
            pass
        self.offset = 0

    def read(self, *records: tuple[str, int]) -> None:
        """Read records, the first one of the partition at the offset 1."""
        for key, version in records:
            self.change(key, version)

    def own(self) -> None:
        """Answer for the partition again."""
        del self.routing.others[PARTITION]
        self.watching.refresh()

    def take(self, stream: Stream) -> list[tuple[str, int]]:
        """Return what the client receives: keys and versions."""
        found = []
        while stream._has_items:  # noqa: SLF001  # an item may have no delivery
            item = stream.next_item()
            for delivery in item if isinstance(item, list) else ():
                assert delivery.answer.kind is EventKind.STATE
                facts = orjson.loads(delivery.answer.body)
                found.append((facts["key"], facts["version"]))
        return found


FORMER, SEEN = [(OTHER, 1), (KEY, 1), (KEY, 2)], [(KEY, 3)]


@pytest.mark.parametrize("wanted", FILTERS)
@pytest.mark.parametrize("has_received", [False, True])
@pytest.mark.parametrize("later", [[], [(KEY, 4), (KEY, 5)]])
async def test_a_watch_receives_what_was_written_while_its_partition_was_read_again(
    wanted: SubscriptionFilter, later: list[tuple[str, int]], *, has_received: bool
) -> None:
    """It receives nothing that was written before it began, and what the client did not take in time."""
    instance = Rereading()
    instance.read(*FORMER)
    with instance.watching.stream(ANONYMOUS) as stream:
        instance.watching.subscribe(stream, "x", wanted, current=False)
        instance.read(*SEEN)
        received = instance.take(stream) if has_received else []
        instance.lose()
        instance.read(*FORMER, *SEEN, *later)
        assert instance.take(stream) == [], "of a partition that it does not answer for"
        instance.own()
        received += instance.take(stream)
        instance.read((KEY, 9))
        received += instance.take(stream)
    assert received == [*(SEEN if has_received or not later else []), *later[-1:], (KEY, 9)]


@pytest.mark.parametrize("wanted", FILTERS)
async def test_a_watch_receives_all_of_a_topic_that_was_created_again(wanted: SubscriptionFilter) -> None:
    """The new topic may have more records than the former one."""
    instance = Rereading()
    instance.read(*FORMER)
    with instance.watching.stream(ANONYMOUS) as stream:
        instance.watching.subscribe(stream, "x", wanted, current=False)
        instance.lose(is_other_topic=True)
        instance.read((KEY, 7), *((OTHER, version) for version in range(8, 20)))
        instance.own()
        assert [one for one in instance.take(stream) if one[0] == KEY] == [(KEY, 7)]


@pytest.mark.parametrize("wanted", FILTERS)
@pytest.mark.parametrize("is_served_first", [False, True])
async def test_a_watch_that_begins_meanwhile_receives_nothing_that_was_written_before(
    wanted: SubscriptionFilter, *, is_served_first: bool
) -> None:
    """The broker returns the end of the partition before the instance answers for it, or after that."""
    instance = Rereading()
    with instance.watching.stream(ANONYMOUS) as stream:
        instance.lose()
        instance.read(*FORMER[:1])
        instance.routing.ends[PARTITION] = len(FORMER) + 1
        instance.watching.subscribe(stream, "x", wanted, current=False)
        running = asyncio.create_task(instance.watching.run())
        if is_served_first:
            instance.read(*FORMER[1:], *SEEN)
            instance.own()
            assert instance.take(stream) == []
        await eventually(lambda: None not in stream.subscriptions["x"].ends.values())
        if not is_served_first:
            instance.read(*FORMER[1:], *SEEN)
            instance.own()
        assert instance.take(stream) == SEEN
        running.cancel()


@pytest.mark.parametrize("wanted", FILTERS)
@pytest.mark.parametrize("is_served_first", [False, True])
async def test_a_watch_begins_at_an_end_that_its_instance_has_not_read(
    wanted: SubscriptionFilter, *, is_served_first: bool
) -> None:
    """An instance serves a partition when it has read to an earlier end: more is written meanwhile."""
    instance = Rereading()
    with instance.watching.stream(ANONYMOUS) as stream:
        instance.lose()
        instance.read(*FORMER)
        instance.routing.ends[PARTITION] = len(FORMER) + 3
        instance.watching.subscribe(stream, "x", wanted, current=False)
        running = asyncio.create_task(instance.watching.run())
        if is_served_first:
            instance.own()
        await eventually(lambda: None not in stream.subscriptions["x"].ends.values())
        if not is_served_first:
            instance.own()
        assert instance.take(stream) == []
        instance.read(*SEEN)
        assert instance.take(stream) == SEEN
        running.cancel()


async def test_nothing_of_a_partition_that_is_read_again_is_sent_before_its_routes_are_refreshed() -> None:
    instance = Rereading()
    with instance.watching.stream(ANONYMOUS) as stream:
        instance.read(*FORMER)
        instance.watching.subscribe(stream, "x", FILTERS[1], current=False)
        instance.lose()
        instance.watching.changed([Change("flights", OTHER, instance.put(OTHER, 1).entry)])
        assert instance.take(stream) == []


async def test_nothing_is_sent_of_a_partition_that_is_lost_before_its_routes_are_refreshed() -> None:
    """An instance that was suspended wakes without a lease: another one may not have read its records yet."""
    instance = Rereading()
    with instance.watching.stream(ANONYMOUS) as stream:
        instance.watching.subscribe(stream, "x", FILTERS[1], current=False)
        instance.routing.others[PARTITION] = PartitionStatus(Role.ELSEWHERE, 0)
        instance.read((KEY, 1))
        assert instance.take(stream) == []
        instance.own()
        assert instance.take(stream) == [(KEY, 1)]
