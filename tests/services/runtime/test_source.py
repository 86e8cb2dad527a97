"""The commits by which a member of a group proves that it owns a partition."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from services.runtime import source
from services.runtime.membership import FRESH_S, NEVER
from services.runtime.source import KafkaSource
from services.runtime.topic_check import TopicCheck
from tests.clock import Clock
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

UNKNOWN = KafkaError(KafkaError.UNKNOWN_MEMBER_ID)
REJECTED = KafkaException(UNKNOWN)


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
        self.raises = False
        self.closed = False

    def subscribe(self, _: Sequence[str], **handlers: Callable[[Any, list[TopicPartition]], object]) -> None:
        self.handlers = handlers
        self.events.append(handlers["on_assign"])

    def poll(self, _: float) -> None:
        while self.events:
            self.events.popleft()(self, [TopicPartition("snapshots", 0)])
        while self.pending and self.answers:
            self.callbacks["on_commit"](self.answers.popleft(), self.pending.popleft())

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        assert asynchronous
        if self.raises:
            raise REJECTED
        self.commits += [(one.partition, one.offset) for one in offsets]
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
        """It is logged."""


class Sourced:
    """A source with its consumer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        members: list[Member] = []

        def create(*arguments: Any) -> Member:
            members.append(Member(arguments[3]))
            return members[0]

        monkeypatch.setattr(source, "create_consumer", create)
        self.clock = Clock(100.0)
        check = TopicCheck((), "nowhere", lambda: None)
        self.source = KafkaSource(
            {},
            "test",
            group="g",
            topic="snapshots",
            batch=1,
            drain=timedelta(seconds=DEADLINE_S),
            check=check,
            clock=self.clock,
        )
        (self.member,) = members
        self.listener = Listener()

    async def join(self) -> None:
        self.source.subscribe(self.listener, asyncio.get_running_loop())
        await self.fetch()

    async def fetch(self) -> None:
        await self.source.fetch(paused=True, full=(), positions={})

    async def prove(self, position: int = 7) -> asyncio.Task[bool]:
        """Begin a proof whose commit was sent."""
        task = asyncio.create_task(self.source.prove(0, position))
        await asyncio.sleep(0)
        await self.source.lag()
        return task


@pytest.fixture
def sourced(monkeypatch: pytest.MonkeyPatch) -> Sourced:
    monkeypatch.setattr(Member, "position", lambda *_: [], raising=False)
    return Sourced(monkeypatch)


async def test_a_commit_that_the_group_accepts_is_a_proof_from_its_begin_on(sourced: Sourced) -> None:
    await sourced.join()
    assert sourced.source.proven_at(0) == NEVER
    proof = await sourced.prove()
    began_at, sourced.clock.now = sourced.clock.now, sourced.clock.now + 1
    await sourced.fetch()
    assert not proof.done()
    sourced.member.answers.append(None)
    await sourced.fetch()
    assert await proof
    assert sourced.source.proven_at(0) == began_at
    assert sourced.source.proven_at(1) == NEVER, "it is not assigned"
    assert sourced.listener.confirmed == [{0: 7}]
    await sourced.fetch()
    assert sourced.source.proven_at(0) == sourced.clock.now


@pytest.mark.parametrize("raises", [False, True])
async def test_a_refused_commit_is_none(sourced: Sourced, caplog: pytest.LogCaptureFixture, *, raises: bool) -> None:
    await sourced.join()
    sourced.member.raises = raises
    proof = await sourced.prove()
    sourced.member.answers.append(UNKNOWN)
    await sourced.fetch()
    assert not await proof
    assert "not committed" in caplog.text
    assert sourced.source.proven_at(0) == NEVER
    assert not sourced.listener.confirmed


async def test_an_error_without_positions_is_the_answer_to_the_oldest_commit(sourced: Sourced) -> None:
    await sourced.join()
    proof = await sourced.prove()
    sourced.member.pending[0] = []
    sourced.member.answers.append(UNKNOWN)
    await sourced.fetch()
    assert not await proof


async def test_a_partition_that_is_lost_is_not_committed(sourced: Sourced, caplog: pytest.LogCaptureFixture) -> None:
    """The group would accept the commit of a member that has another partition."""
    await sourced.join()
    waits = await sourced.prove()
    sourced.member.events.append(sourced.member.handlers["on_lost"])
    await sourced.fetch()
    assert not await waits
    assert not await sourced.source.prove(0, 7)
    assert sourced.member.commits == [(0, 7)]
    assert caplog.text.count("not committed") == 2


async def test_a_proof_does_not_delay_the_revocation_of_its_partition(
    sourced: Sourced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener waits for the work in progress, in the consumer's thread, which would have to commit."""
    await sourced.join()
    sent = await sourced.prove()
    answers: list[bool] = []

    async def revoked(partitions: list[int]) -> dict[int, int]:
        assert partitions == [0]
        answers.extend([await sent, await sourced.source.prove(0, 8)])
        return {}

    monkeypatch.setattr(sourced.listener, "on_revoked", revoked)
    sourced.member.events.append(sourced.member.handlers["on_revoke"])
    revoking = asyncio.create_task(sourced.fetch())
    waits = asyncio.create_task(sourced.source.prove(0, 9))
    async with asyncio.timeout(DEADLINE_S):
        await revoking
        assert not await waits
    assert answers == [False, False]
    assert sourced.member.commits == [(0, 7)]


async def test_an_equal_commit_that_began_before_a_pause_is_awaited_and_is_no_proof(sourced: Sourced) -> None:
    await sourced.join()
    await sourced.source.fetch(paused=True, full=(), positions={0: 7})
    sourced.clock.now += FRESH_S + 1
    await sourced.fetch()
    proof = await sourced.prove()
    assert sourced.member.commits == [(0, 7)]
    sourced.member.answers.append(None)
    await sourced.fetch()
    assert await proof
    assert sourced.clock.now - sourced.source.proven_at(0) > FRESH_S
    proof = await sourced.prove()
    sourced.member.answers.append(None)
    await sourced.fetch()
    assert await proof
    assert sourced.source.proven_at(0) == sourced.clock.now


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_worker_leaves_the_group_unless_a_commit_is_unanswered(
    sourced: Sourced, caplog: pytest.LogCaptureFixture, *, is_answered: bool
) -> None:
    """The client would wait for the answer, and the broker may be away."""
    await sourced.join()
    proof = await sourced.prove()
    if is_answered:
        sourced.member.answers.append(None)
        await sourced.fetch()
    async with asyncio.timeout(DEADLINE_S):
        await sourced.source.close()
    assert sourced.member.closed is is_answered
    assert ("without leaving the group" in caplog.text) is not is_answered
    proof.cancel()
