"""The commits by which a member of a group proves that it owns a partition."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka import group_consumer
from services.runtime.kafka.group_consumer import KafkaGroupConsumer
from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.kafka.membership import FRESH_S, NEVER
from services.runtime.topic_check import TopicCheck
from tests.clock import Clock
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

UNKNOWN = KafkaError(KafkaError.UNKNOWN_MEMBER_ID)
REJECTED = KafkaException(UNKNOWN)


class Failure:
    """An error in place of a record."""

    def __init__(self, error: KafkaError) -> None:
        self.error = lambda: error


class Member:
    """A consumer whose group answers its commits with these errors, in a poll. It is assigned partition 0, or loses it.

    With `raises`, it refuses commits at once.
    """

    def __init__(self, callbacks: Mapping[str, Callable[..., object]]) -> None:
        self.callbacks = callbacks
        self.answers: deque[KafkaError | None] = deque()
        self.pending: deque[list[TopicPartition]] = deque()
        self.commits: list[tuple[int, int]] = []
        self.events: deque[Callable[[Any, list[TopicPartition]], object]] = deque()
        self.failures: deque[KafkaError] = deque()
        """The errors that the next polls return in place of records."""
        self.raises = False
        self.closed = False

    def subscribe(self, _: Sequence[str], **handlers: Callable[[Any, list[TopicPartition]], object]) -> None:
        self.handlers = handlers
        self.events.append(handlers["on_assign"])

    def poll(self, _: float) -> Failure | None:
        while self.events:
            self.events.popleft()(self, [TopicPartition("snapshots", 0)])
        while self.pending and self.answers:
            self.callbacks["on_commit"](self.answers.popleft(), self.pending.popleft())
        return Failure(self.failures.popleft()) if self.failures else None

    def consume(self, _: int, __: float) -> list[Failure]:
        return []

    def seek(self, _: TopicPartition) -> None:
        """Have no records."""

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        assert asynchronous
        if self.raises:
            raise REJECTED
        self.commits += [(offset.partition, offset.offset) for offset in offsets]
        self.pending.append(offsets)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Have no records."""

    resume = pause

    def list_topics(self, timeout: float) -> None:
        assert timeout
        raise REJECTED

    def close(self) -> None:
        self.closed = True


class Listener:
    """See `RebalanceListener`."""

    def __init__(self) -> None:
        self.confirmed: list[dict[int, int]] = []
        self.errors = 0

    def on_assigned(self, partitions: list[int]) -> None:
        assert partitions == [0]

    async def on_revoked(self, partitions: list[int]) -> dict[int, int]:
        assert partitions == [0]
        return {}

    def on_lost(self, partitions: list[int]) -> None:
        assert partitions == [0]

    def on_committed(self, positions: dict[int, int]) -> None:
        self.confirmed.append(positions)

    def on_error(self) -> None:
        self.errors += 1


class Joining:
    """A member of a group, with its client."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        members: list[Member] = []

        def create(*arguments: Any) -> Member:
            members.append(Member(arguments[3]))
            return members[0]

        monkeypatch.setattr(group_consumer, "create_consumer", create)
        self.clock = Clock(100.0)
        check = TopicCheck((), "nowhere", lambda: None)
        subscription = TopicSubscription("g", "snapshots", 1, timedelta(seconds=DEADLINE_S), check, {})
        self.consumer = KafkaGroupConsumer({}, "test", subscription, self.clock)
        (self.member,) = members
        self.listener = Listener()

    async def join(self) -> None:
        self.consumer.subscribe(self.listener, asyncio.get_running_loop())
        await self.fetch()

    async def fetch(self) -> None:
        await self.consumer.fetch(paused=True, full=(), positions={})

    async def prove(self, position: int = 7) -> asyncio.Task[bool]:
        """Begin a proof whose commit was sent."""
        task = asyncio.create_task(self.consumer.prove(0, position))
        await asyncio.sleep(0)
        await self.consumer.lag()
        return task


@pytest.fixture
def joining(monkeypatch: pytest.MonkeyPatch) -> Joining:
    monkeypatch.setattr(Member, "position", lambda *_: [], raising=False)
    return Joining(monkeypatch)


async def test_a_commit_that_the_group_accepts_is_a_proof_from_its_begin_on(joining: Joining) -> None:
    await joining.join()
    assert joining.consumer.proven_at(0) == NEVER
    proof = await joining.prove()
    began_at, joining.clock.now = joining.clock.now, joining.clock.now + 1
    await joining.fetch()
    assert not proof.done()
    joining.member.answers.append(None)
    await joining.fetch()
    assert await proof
    assert joining.consumer.proven_at(0) == began_at
    assert joining.consumer.proven_at(1) == NEVER, "it is not assigned"
    assert joining.listener.confirmed == [{0: 7}]
    await joining.fetch()
    assert joining.consumer.proven_at(0) == joining.clock.now


@pytest.mark.parametrize("raises", [False, True])
async def test_a_refused_commit_is_none(joining: Joining, caplog: pytest.LogCaptureFixture, *, raises: bool) -> None:
    await joining.join()
    joining.member.raises = raises
    proof = await joining.prove()
    joining.member.answers.append(UNKNOWN)
    await joining.fetch()
    assert not await proof
    assert "not committed" in caplog.text
    assert joining.consumer.proven_at(0) == NEVER
    assert not joining.listener.confirmed


async def test_an_error_without_positions_is_the_answer_to_the_oldest_commit(joining: Joining) -> None:
    await joining.join()
    proof = await joining.prove()
    joining.member.pending[0] = []
    joining.member.answers.append(UNKNOWN)
    await joining.fetch()
    assert not await proof


async def test_a_partition_that_is_lost_is_not_committed(joining: Joining, caplog: pytest.LogCaptureFixture) -> None:
    """The group would accept the commit of a member that has another partition."""
    await joining.join()
    waits = await joining.prove()
    joining.member.events.append(joining.member.handlers["on_lost"])
    await joining.fetch()
    async with asyncio.timeout(DEADLINE_S):
        assert not await waits
        assert not await joining.consumer.prove(0, 7)
    assert joining.member.commits == [(0, 7)]
    assert caplog.text.count("not committed") == 2


async def test_a_proof_does_not_delay_the_revocation_of_its_partition(
    joining: Joining, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener waits for the work in progress, in the consumer's thread, which would have to commit."""
    await joining.join()
    sent = await joining.prove()
    answers: list[bool] = []

    async def revoked(partitions: list[int]) -> dict[int, int]:
        assert partitions == [0]
        answers.extend([await sent, await joining.consumer.prove(0, 8)])
        return {}

    monkeypatch.setattr(joining.listener, "on_revoked", revoked)
    joining.member.events.append(joining.member.handlers["on_revoke"])
    revoking = asyncio.create_task(joining.fetch())
    waits = asyncio.create_task(joining.consumer.prove(0, 9))
    async with asyncio.timeout(DEADLINE_S):
        await revoking
        assert not await waits
    assert answers == [False, False]
    assert joining.member.commits == [(0, 7)]


async def test_an_equal_commit_that_began_before_a_pause_is_awaited_and_is_no_proof(joining: Joining) -> None:
    await joining.join()
    await joining.consumer.fetch(paused=True, full=(), positions={0: 7})
    joining.clock.now += FRESH_S + 1
    await joining.fetch()
    proof = await joining.prove()
    assert joining.member.commits == [(0, 7)]
    joining.member.answers.append(None)
    await joining.fetch()
    assert await proof
    assert joining.clock.now - joining.consumer.proven_at(0) > FRESH_S
    proof = await joining.prove()
    joining.member.answers.append(None)
    await joining.fetch()
    assert await proof
    assert joining.consumer.proven_at(0) == joining.clock.now


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_worker_leaves_the_group_unless_a_commit_is_unanswered(
    joining: Joining, caplog: pytest.LogCaptureFixture, *, is_answered: bool
) -> None:
    """The client would wait for the answer, and the broker may be away."""
    await joining.join()
    proof = await joining.prove()
    if is_answered:
        joining.member.answers.append(None)
        await joining.fetch()
    async with asyncio.timeout(DEADLINE_S):
        await joining.consumer.close()
    assert joining.member.closed is is_answered
    assert ("without leaving the group" in caplog.text) is not is_answered
    proof.cancel()


async def test_a_position_is_committed_again_after_its_partition_was_sought(joining: Joining) -> None:
    """Until the broker has confirmed it again, a worker that stops waits for it."""
    await joining.join()
    for _ in range(2):
        await joining.consumer.fetch(paused=True, full=(), positions={0: 7})
        joining.member.answers.append(None)
        await joining.fetch()
        assert await joining.consumer.seek({0: 3}) == {0}
    assert joining.listener.confirmed == [{0: 7}, {0: 7}]


@pytest.mark.parametrize(("error", "found"), [(None, {0: 0}), (UNKNOWN, {})])
async def test_a_committed_offset_that_is_refused_is_not_the_beginning(
    monkeypatch: pytest.MonkeyPatch, joining: Joining, error: KafkaError | None, found: Mapping[int, int]
) -> None:
    monkeypatch.setattr(Member, "position", lambda _, partitions: partitions)
    answer = SimpleNamespace(offset=OFFSET_INVALID, error=error)
    monkeypatch.setattr(Member, "committed", lambda *_: [answer], raising=False)
    await joining.join()
    assert await joining.consumer.next_offsets([0]) == found
    assert joining.listener.errors == (error is not None)


async def test_a_fatal_error_is_raised_and_any_other_is_counted(joining: Joining) -> None:
    await joining.join()
    joining.member.failures += [UNKNOWN, KafkaError(KafkaError.FENCED_INSTANCE_ID, fatal=True)]
    await joining.fetch()
    with pytest.raises(ConsumerFailedError, match="FENCED_INSTANCE_ID"):
        await joining.fetch()
    assert joining.listener.errors == 1
