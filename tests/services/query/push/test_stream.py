"""In any order of records, scans and moves, versions only grow and all subscriptions converge."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.query.lookup.problems import Problem
from services.query.push.event import Answer, EventKind
from services.query.push.filter import SubscriptionFilter
from services.query.push.stream_items import (
    BATCH_BYTES,
    Delivery,
    EarlierVersions,
    InitialStateSent,
    PartitionsStarted,
    ProgressMark,
    StreamRefused,
    StreamReset,
    SubscriptionDenied,
)
from services.query.push.subscription import Subscription
from services.query.store import Entry, Update
from services.query.store.errors import StoreClosedError
from tests.services.query.push.stream_world import FILTERS, KEYS, STATUSES, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.query.push.stream import Stream
    from services.query.push.stream_items import StreamItem

COPY = Delivery(Answer(EventKind.STATE, b'{"key":"b9"}'), ["0"], 0.0)
STEPS = st.one_of(
    st.tuples(st.just("record"), st.sampled_from(KEYS), st.sampled_from(STATUSES)),
    st.tuples(st.just("remove"), st.sampled_from(KEYS)),
    st.tuples(st.just("notify"), st.integers(1, 3)),
    st.tuples(st.just("subscribe"), st.integers(0, len(FILTERS) - 1), st.booleans()),
    st.tuples(st.just("take"), st.integers(1, 3)),
    st.tuples(st.just("lose"), st.integers(0, 3)),
    st.tuples(st.just("own"), st.integers(0, 3)),
)


def _play(world: World, steps: list[tuple[Any, ...]]) -> None:
    for name, *arguments in steps:
        step: Callable[..., None] = getattr(world, name)
        step(*arguments)


@settings(max_examples=300)
@given(st.lists(STEPS.filter(lambda step: step[0] != "remove"), max_size=40))
def test_versions_only_grow_and_all_subscriptions_converge(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    _play(world, steps)
    world.settle()
    world.check()


@settings(max_examples=300)
@given(st.lists(STEPS.filter(lambda step: step[0] not in ("lose", "own")), max_size=40))
def test_subscriptions_converge_when_keys_are_removed_while_nothing_moves(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    _play(world, steps)
    world.settle()
    world.check()


def test_a_match_that_was_read_is_not_followed_by_an_earlier_mismatch() -> None:
    world = World()
    world.record("a1", "flying")
    world.record("a1", "landed")
    world.subscribe(3, current=True)
    world.take(1)
    world.notify(2)
    assert world.stream.next_item() == InitialStateSent(next(iter(world.views)), {0, 1, 2, 3})
    assert world.stream.next_item() is None


@pytest.mark.parametrize("which", [0, 2, 3])
def test_a_reappearance_that_was_read_is_not_followed_by_the_earlier_removal(which: int) -> None:
    world = World()
    world.record("a1", "landed")
    world.remove("a1")
    world.record("a1", "landed")
    world.subscribe(which, current=True)
    world.take(1)
    world.notify(3)
    assert isinstance(world.stream.next_item(), InitialStateSent)
    assert world.stream.next_item() is None


@pytest.mark.parametrize("current", [True, False])
def test_a_scan_that_a_move_interrupted_is_repeated_on_return(*, current: bool) -> None:
    world = World()
    world.subscribe(2, current=current)
    world.take(5)
    world.lose(3)
    world.record("a1", "landed")
    world.notify(1)
    world.own(3)
    world.record("b1", "landed")  # later in the same partition, and delivered before the first was read
    world.notify(1)
    world.lose(3)
    world.take(5)
    world.settle()
    world.check()


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_a_subscription_that_starts_without_owner_receives_exactly_the_changes(which: int) -> None:
    world = World()
    world.record("a1", "landed")
    world.notify(1)
    world.lose(3)
    world.subscribe(which, current=False)
    world.own(3)
    world.take(5)
    (view,) = world.views.values()
    assert view.versions == {}
    world.lose(3)
    world.subscribe(which, current=False)
    world.record("a1", "landed")
    world.notify(1)
    world.settle()
    assert [view.versions for view in world.views.values()] == [{"a1": 2}, {"a1": 2}]


def test_a_scan_stops_when_its_partition_moves_away() -> None:
    world = World()
    for number in range(30):
        world.version += 1
        entry = Entry(0, 0, world.version, 0, number % 4, world.version, b'{"status":"landed"}')
        world.store.apply([Update(f"a{number:02}", number % 4, world.version, entry)], {number % 4: world.version + 1})
    world.subscribe(2, current=True)
    world.take(1)
    world.lose(0)
    world.take(50)
    (view,) = world.views.values()
    assert sorted(view.versions) == [f"a{number:02}" for number in range(30) if number < 10 or number % 4]
    world.own(0)
    world.take(50)
    assert sorted(view.versions) == [f"a{number:02}" for number in range(30)]


@pytest.mark.parametrize("current", [True, False])
def test_changes_while_a_partition_was_lost_are_read_despite_an_earlier_scan(*, current: bool) -> None:
    """The earlier scan has passed the key already, and has read nothing since that would have ended it."""
    world = World()
    keys = [f"a{number:03}" for number in range(200) if world.routing.partition("flights", f"a{number:03}") == 3][:30]
    for key in keys if current else keys[:1]:
        world.record(key, "landed")
    world.notify(len(world.pending))
    world.subscribe(2, current=current)
    if not current:
        world.lose(3)
        for key in keys:
            world.record(key, "landed")
        world.notify(len(keys))
        world.own(3)
    world.take(1)
    world.lose(3)
    world.record(keys[0], "flying")
    world.notify(1)
    world.own(3)
    world.record(keys[-1], "flying")
    world.notify(1)
    world.take(1)
    world.lose(3)
    world.take(3)
    world.own(3)
    world.take(50)
    (view,) = world.views.values()
    assert view.versions == {key: world.store.get(key).version for key in keys}  # type: ignore[union-attr]


def test_a_partition_that_is_read_again_is_delivered_from_its_beginning() -> None:
    """Its topic may be a new one: a scan after an offset becomes a complete scan."""
    world = World()
    world.record("a1", "landed")
    world.notify(1)
    world.subscribe(2, current=True)
    world.take(5)
    (one,) = world.views
    world.lose(3)
    world.record("a1", "flying")
    world.notify(1)
    world.own(3)
    assert (one.since[3], one.scans[3].since) == (1, 1)
    world.feed.forget("flights", 3, is_other_topic=False)
    assert (one.since[3], one.scans) == (None, {})


def test_a_change_without_subscriptions_is_read_by_a_later_one() -> None:
    """What is cached for earlier clients is forgotten at each change, also if no client watches then."""
    world = World()
    world.record("a1", "landed")
    world.notify(1)
    world.subscribe(0, current=True)
    world.take(2)
    (first,) = world.views
    world.feed.remove(first)
    world.record("a1", "flying")
    world.notify(1)
    world.subscribe(0, current=True)
    world.take(2)
    assert [view.versions for view in world.views.values()] == [{"a1": 1}, {"a1": 2}]


@pytest.fixture
def stream() -> Stream:
    return World().stream


def subscribe(stream: Stream, name: str) -> Subscription:
    found = Subscription(name, SubscriptionFilter("flights", "a"), stream, current=True, limit=10)
    stream.subscribe(found)
    return found


def test_an_ended_subscription_receives_nothing(stream: Stream) -> None:
    one, other = subscribe(stream, "one"), subscribe(stream, "other")
    answer = Answer(EventKind.NEVER_SEEN, b"{}")
    for each in (one, other):
        stream.send_first(PartitionsStarted(each, {0: 7}))
        stream.send_first(EarlierVersions(each, iter([[Delivery(answer, [each.name], 0.0)]])))
        stream.finish_initial(each, {0})
    stream.send_first([Delivery(answer, ["one"], 0.0)])
    stream.copy(Delivery(answer, ["one", "other"], 0.0))
    stream.copy(Delivery(answer, ["one"], 0.0))
    stream.withdraw(one)
    assert stream.next_item() == (other, {0: 7})
    assert stream.next_item() == [(answer, ["other"], 0.0)]
    assert stream.next_item() == (other, {0})
    assert stream.next_item() == [(answer, ["other"], 0.0)]
    assert stream.next_item() is None


def test_no_earlier_version_is_sent_of_a_partition_that_another_instance_serves() -> None:
    """It would have the role of an instance that does not serve it."""
    world = World()
    world.subscribe(0, current=False)
    (one,) = world.views
    world.stream.send_first(EarlierVersions(one, iter([[COPY], [COPY]])))
    assert world.stream.next_item() == [COPY]
    world.lose(3)
    assert world.stream.next_item() is None


class _Writer:
    """A client that takes everything."""

    is_writable = True

    def write(self, data: bytes) -> None:
        assert data

    async def drain(self) -> None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_flushed", [True, False])
async def test_an_item_that_cannot_be_encoded_ends_its_stream_alone(
    stream: Stream, caplog: pytest.LogCaptureFixture, *, is_flushed: bool
) -> None:
    """With a problem: at an end in order, another instance would count on what was under way."""
    sent = []

    def encode(item: StreamItem) -> bytes:
        if item == [COPY]:
            raise ValueError("no such year")
        sent.append(item)
        return b"{}"

    running = asyncio.create_task(stream.run(_Writer(), encode))
    if is_flushed:
        await asyncio.sleep(0)  # it waits for items
    stream.copy(COPY)
    stream.flush()
    await running
    assert "no such year" in caplog.text
    (refused,) = sent
    assert isinstance(refused, StreamRefused)
    assert refused.problem.kind == "failed"


async def test_an_item_that_never_can_be_encoded_ends_its_stream(stream: Stream) -> None:
    def fail(_: StreamItem) -> bytes:
        raise ValueError("no such year")

    stream.copy(COPY)
    await stream.run(_Writer(), fail)


async def test_an_error_of_the_store_does_not_end_the_stream_alone(stream: Stream) -> None:
    def fail(_: StreamItem) -> bytes:
        raise StoreClosedError(Path("store"))

    running = asyncio.create_task(stream.run(_Writer(), fail))
    await asyncio.sleep(0)
    stream.copy(COPY)
    with pytest.raises(StoreClosedError):
        stream.flush()
    stream.end()
    await running


async def test_what_an_ended_subscription_would_have_received_takes_no_room(stream: Stream) -> None:
    one = subscribe(stream, "one")
    stream.copy(Delivery(Answer(EventKind.STATE, b"x" * 2 * BATCH_BYTES), ["one"], 0.0))
    waiting = asyncio.create_task(stream.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    stream.withdraw(one)
    await asyncio.sleep(0)
    assert waiting.done()


async def test_a_reset_leaves_room_for_copies(stream: Stream) -> None:
    stream.copy(Delivery(Answer(EventKind.STATE, b"x" * 2 * BATCH_BYTES), ["one"], 0.0))
    waiting = asyncio.create_task(stream.wait_for_room())
    await asyncio.sleep(0)
    stream.reset()
    assert stream.next_item() == StreamReset()
    await asyncio.sleep(0)
    assert waiting.done()


def test_no_mark_counts_what_a_reset_has_dropped(stream: Stream) -> None:
    """Until the client has subscribed again, and was sent the present values."""
    one, other = subscribe(stream, "one"), subscribe(stream, "other")
    stream.reset()
    assert stream.next_item() == StreamReset()
    for lost in (one, other):
        stream.mark()
        mark = stream.next_item()
        assert isinstance(mark, ProgressMark)
        assert not mark.complete
        stream.withdraw(lost)
    stream.mark()
    mark = stream.next_item()
    assert isinstance(mark, ProgressMark)
    assert mark.complete


def test_a_busy_owner_does_not_hold_back_the_names_of_this_instance() -> None:
    world = World()
    world.subscribe(1, current=False)
    for _ in range(5):
        world.stream.copy(COPY)
    world.record("a1", "landed")
    world.notify(1)
    found = [world.stream.next_item() for _ in range(6)]
    assert [item == [COPY] for item in found].index(False) < 2
    assert found.count([COPY]) == 5


def test_copies_of_a_partition_precede_its_names_when_it_moves_here() -> None:
    world = World()
    world.lose(3)
    world.subscribe(1, current=False)
    world.stream.copy(COPY)
    world.stream.copy(COPY)
    world.own(3)
    world.record("a1", "landed")
    world.notify(1)
    assert [world.stream.next_item() == [COPY] for _ in range(3)] == [True, True, False]


def test_a_change_that_nobody_receives_ends_the_earlier_one_of_its_batch() -> None:
    world = World()
    world.subscribe(3, current=False)
    world.record("a1", "landed")
    world.record("a1", "flying")
    world.notify(2)
    world.take(5)
    world.check()


def test_a_new_subscription_drops_the_denial_of_an_earlier_one(stream: Stream) -> None:
    problem = Problem("not_yours", "The token does not reach so far any more")
    for name in ("one", "other"):
        stream.send_first(SubscriptionDenied(name, problem))
    subscribe(stream, "one")
    assert stream.next_item() == SubscriptionDenied("other", problem)
    assert stream.next_item() is None
