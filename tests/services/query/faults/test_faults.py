"""Several instances on a real broker under a reader of all keys, while they and the broker are hurt.

docs/how-to/run-query-instances.md has the bounds; here they have some slack, because other tests load the machine.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from services.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.query.faults.checker import Checker
from tests.services.query.faults.fleet import Fleet, Instance
from tests.services.query.faults.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.alone]
KEYS = [f"car/{number}" for number in range(100)]
LEASE_S, SESSION_S = 3.0, 6.0
TAKEN_OVER_S = 1.25 * LEASE_S + 1
SLACK_S = 2.0
ANSWER_S = 1.0
"""How long one that stands still lets others wait for its answer, before they ask the next."""


class Scene(NamedTuple):
    """What a test plays with."""

    fleet: Fleet
    instances: list[Instance]
    checker: Checker
    writer: Writer

    async def settled(self, *instances: Instance) -> None:
        """These have shared the partitions."""
        await asyncio.to_thread(self.fleet.settle, *instances)

    async def passes(self, seconds: float) -> None:
        """Let it go on for a while, which a fault lasts."""
        await asyncio.sleep(seconds)

    async def answered(self) -> None:
        """Every key has been answered since now."""
        self.checker.mark()
        began = self.checker.answers_of()
        await asyncio.to_thread(
            wait_until,
            lambda: all(now > before for now, before in zip(self.checker.answers_of(), began, strict=True)),
            f"an answer for each key\n{self.fleet.logs()}",
            DEADLINE_S,
        )


@asynccontextmanager
async def scene(broker: EmbeddedBroker, prefix: str, folder: Path, names: str, **settings: str) -> AsyncIterator[Scene]:
    """Instances that have shared the partitions, a writer and a reader.

    In the end nothing has gone back, and each key is shown as it was written last.
    """
    fleet = Fleet(broker.bootstrap, prefix, folder, **settings)
    instances = [fleet.instance(name) for name in names]
    writer = Writer(broker.bootstrap, fleet.topic, KEYS)
    writer.once()
    with fleet.running():
        for one in instances:
            one.start()
        await asyncio.to_thread(fleet.settle, *instances)
        async with Checker(instances, KEYS) as checker:
            found = Scene(fleet, instances, checker, writer)
            with writer:
                await found.answered()
                yield found
            await asyncio.to_thread(
                wait_until, lambda: _as_written(checker, writer), f"all as written\n{fleet.logs()}", DEADLINE_S
            )
        assert checker.back == [], fleet.logs()


def _as_written(checker: Checker, writer: Writer) -> bool:
    return {key: version for key, (_, version) in checker.delivered().items()} == {
        key: version for key, (_, version) in writer.written.items()
    }


async def test_adding_and_stopping_instances_costs_no_reads(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "a") as play:
        (a,) = play.instances
        b, c = play.fleet.instance("b"), play.fleet.instance("c")
        play.checker.mark()
        for more in (b, c):
            more.start()
            await play.settled(*play.checker.instances, more)
            play.checker.instances.append(more)
        assert play.checker.lost() < SLACK_S
        play.checker.mark()
        assert await asyncio.to_thread(a.stop) == 0
        await play.answered()
        assert play.checker.lost() < SLACK_S
        a.start()
        await play.settled(a, b, c)


async def test_replicas_answer_for_an_owner_that_is_killed_or_suspended(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "abc") as play:
        a, b, c = play.instances
        play.checker.mark()
        b.kill()
        await play.passes(TAKEN_OVER_S)
        await play.settled(a, c)
        assert play.checker.lost() < TAKEN_OVER_S + SLACK_S
        b.start()
        await play.settled(a, b, c)
        play.checker.mark()
        c.freeze()
        await play.passes(SESSION_S + TAKEN_OVER_S)
        c.thaw()
        await play.settled(a, b, c)
        assert play.checker.lost() < TAKEN_OVER_S + SLACK_S + ANSWER_S
        await play.answered()
        b.kill()
        b.start()
        await play.settled(a, b, c)


async def test_nobody_goes_back_over_a_restart_of_the_broker(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "ab") as play:
        play.checker.mark()
        began = time.monotonic()
        broker.kill()
        try:
            await play.passes(LEASE_S + 1)
        finally:
            await asyncio.to_thread(broker.start)
        away = time.monotonic() - began
        await play.settled(*play.instances)
        assert play.checker.lost() < away - LEASE_S + 5 + SLACK_S


async def test_without_replicas_the_group_finds_another_owner(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "ab", replicas="1") as play:
        a, b = play.instances
        play.checker.mark()
        b.kill()
        await play.passes(SESSION_S)
        await play.settled(a)
        assert TAKEN_OVER_S - 1 < play.checker.lost() < SESSION_S + 1 + SLACK_S


def test_the_reader_notices_what_goes_back(tmp_path: Path) -> None:
    instance = Instance("a", tmp_path, {})
    checker = Checker([instance], KEYS)
    later = {"window_start": "2026-01-01T00:01:00Z", "version": 1}
    assert checker.judge(instance, KEYS[0], ("", 0), later)
    assert checker.back == []
    floor = checker.delivered()[KEYS[0]]
    assert not checker.judge(instance, KEYS[0], floor, {"type": "catching_up"})
    for earlier in ({"window_start": "2026-01-01T00:00:00Z", "version": 9}, {"type": "never_seen"}):
        checker.judge(instance, KEYS[0], floor, earlier)
    assert len(checker.back) == 2
