"""From which offsets a stream continues for another instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.query.push.stream_items import PartitionsStarted
from services.query.push.subscription import BEFORE_ALL, Subscription
from tests.services.query.push.stream_world import FILTERS, View, World

if TYPE_CHECKING:
    from services.query.push.filter import SubscriptionFilter


@pytest.mark.parametrize("wanted", FILTERS[:2])
@pytest.mark.parametrize("current", [False, True])
@pytest.mark.parametrize("is_ahead", [False, True])
def test_an_offset_that_the_topic_has_not_reached_does_not_count(
    wanted: SubscriptionFilter, *, current: bool, is_ahead: bool
) -> None:
    """Another instance has it from an earlier topic of this name, and would miss all records before it."""
    world = World()
    world.record("a1", "landed")
    one = relayed(world, wanted, world.version + is_ahead, current=current)
    found = [world.stream.next_item() for _ in range(3)]
    assert any(isinstance(item, list) for item in found) == is_ahead
    begun = [item for item in found if isinstance(item, PartitionsStarted)]
    assert [item.offsets for item in begun] == [dict.fromkeys(one.since, BEFORE_ALL)] * is_ahead


def test_the_offset_of_a_partition_without_an_owner_stays() -> None:
    """The next owner sends what the former one had not sent when it was killed."""
    world = World()
    world.record("a1", "landed")
    partition = world.routing.partition("flights", "a1")
    world.lose(partition)
    one = relayed(world, FILTERS[1], world.version, current=False)
    world.record("a1", "flying")
    world.own(partition)
    assert one.since == {partition: 1}
    found = [world.stream.next_item() for _ in range(3)]
    assert [type(item) for item in found if item is not None] == [list]


@pytest.mark.parametrize("wanted", FILTERS[:2])
def test_a_watch_continues_at_what_its_owner_had_read_if_the_end_is_known_later(wanted: SubscriptionFilter) -> None:
    """The next owner sends what this one had not sent when it was killed."""
    world = World()
    world.record("a1", "landed")
    partition = world.routing.partition("flights", "a1")
    world.lose(partition)
    one = relay(world, wanted, None, current=False)
    world.moves.start(world.stream, one)
    world.own(partition)
    began = world.version
    world.record("a1", "flying")
    world.moves.begin_at(world.stream, one, {partition: world.version + 1})
    found = [world.stream.next_item() for _ in range(3)]
    assert [item.offsets for item in found if isinstance(item, PartitionsStarted)] == [{partition: began}]
    assert any(isinstance(item, list) for item in found)


def relayed(world: World, wanted: SubscriptionFilter, since: int, *, current: bool) -> Subscription:
    """Start a subscription of another instance, of the partition of a key."""
    one = relay(world, wanted, since, current=current)
    world.start(one)
    return one


def relay(world: World, wanted: SubscriptionFilter, since: int | None, *, current: bool) -> Subscription:
    """Add a subscription of another instance, of the partition of a key."""
    one = Subscription("one", wanted, world.stream, current=current, limit=100, is_relayed=True)
    one.since = {world.routing.partition("flights", "a1"): since}
    world.views[one] = View(0)
    world.stream.subscribe(one)
    world.feed.add(one)
    return one
