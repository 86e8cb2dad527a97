"""Several instances on a real broker under a reader of all keys, during faults of them and of the broker.

How long keys have no answer is judged in virtual time: `tests/simulation/instances/test_interruptions.py`.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.query.faults.checker import NOTHING, Checker
from tests.services.query.faults.fleet import Fleet, Instance
from tests.services.query.faults.patient import PatientReader
from tests.services.query.faults.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.kills_broker]
KEYS = [f"car/{number}" for number in range(100)]
LEASE_S = 3.0
SUSPENDED_S, LONG_SUSPENDED_S = 11.0, 25.0
"""Both are longer than the session timeout and the take-over together."""


class Scene(NamedTuple):
    """The instances, with a writer and a checker."""

    fleet: Fleet
    instances: list[Instance]
    checker: Checker
    writer: Writer

    async def settle(self, *instances: Instance) -> None:
        """Wait until these instances share the partitions."""
        await asyncio.to_thread(self.fleet.settle, *instances)

    async def wait(self, seconds: float) -> None:
        """Wait for so many seconds, during a fault."""
        await asyncio.sleep(seconds)

    async def wait_for_answers(self) -> None:
        """Wait until every key has been answered again."""
        began = self.checker.answers_of()
        await asyncio.to_thread(
            wait_until,
            lambda: all(now > before for now, before in zip(self.checker.answers_of(), began, strict=True)),
            f"an answer for each key\n{self.fleet.logs()}",
            DEADLINE_S,
        )


@asynccontextmanager
async def scene(broker: EmbeddedBroker, prefix: str, folder: Path, names: str, **settings: str) -> AsyncIterator[Scene]:
    """Start instances that share the partitions, a writer and a checker.

    At the end, no answer may have been older than an earlier one, and each key must have the last written version.
    """
    fleet = Fleet(broker.bootstrap, prefix, folder, **settings)
    instances = [fleet.instance(name) for name in names]
    writer = Writer(broker.bootstrap, fleet.topic, KEYS)
    writer.once()
    with fleet.running():
        for instance in instances:
            instance.start()
        await asyncio.to_thread(fleet.settle, *instances)
        async with Checker(instances, KEYS) as checker:
            found = Scene(fleet, instances, checker, writer)
            with writer:
                await found.wait_for_answers()
                yield found
            await asyncio.to_thread(
                wait_until, lambda: _as_written(checker, writer), f"all as written\n{fleet.logs()}", DEADLINE_S
            )
        assert checker.regressions == [], fleet.logs()


def _as_written(checker: Checker, writer: Writer) -> bool:
    return {key: version for key, (_, _, version) in checker.delivered().items()} == {
        key: version for key, (_, version) in writer.written.items()
    }


async def test_reads_succeed_while_instances_are_added_and_stopped(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "a") as play:
        (a,) = play.instances
        b, c = play.fleet.instance("b"), play.fleet.instance("c")
        for more in (b, c):
            more.start()
            await play.settle(*play.instances, more)
            play.instances.append(more)
            play.checker.instances.append(more)
        assert await asyncio.to_thread(a.stop) == 0
        await play.wait_for_answers()
        a.start()
        await play.settle(a, b, c)


async def test_replicas_answer_for_an_owner_that_is_killed_or_suspended(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "abc") as play:
        a, b, c = play.instances
        b.kill()
        await play.settle(a, c)
        await play.wait_for_answers()
        b.start()
        await play.settle(a, b, c)
        c.freeze()
        await play.wait(SUSPENDED_S)
        await play.wait_for_answers()
        c.thaw()
        await play.settle(a, b, c)
        await play.wait_for_answers()
        b.kill()
        b.start()
        await play.settle(a, b, c)


async def test_an_instance_that_was_suspended_returns_nothing_older(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    """Requests that came meanwhile are answered when it wakes: by itself, and by others that it forwards to."""
    async with (
        scene(broker, topics_prefix, tmp_path, "abc") as play,
        PatientReader(play.instances[2], KEYS, play.checker) as at_suspended,
        PatientReader(play.instances[0], KEYS, play.checker) as at_other,
    ):
        a, b, c = play.instances
        for reader in (at_suspended, at_other):
            assert await reader.all_answers_by() == {"a", "b", "c"}, "also the connections between instances are open"
        c.freeze()
        at_other.send()
        await play.wait(SUSPENDED_S)
        await play.settle(a, b)
        assert await at_other.receive()
        await play.wait_for_answers()
        at_suspended.send()
        await play.wait(LONG_SUSPENDED_S - SUSPENDED_S)
        c.thaw()
        await at_suspended.receive()
        await play.settle(a, b, c)
        for reader in (at_suspended, at_other):
            assert await reader.all_answers_by() == {"a", "b", "c"}, "over the same connections"


async def test_no_answer_is_older_after_a_restart_of_the_broker(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "ab") as play:
        broker.kill()
        try:
            await play.wait(LEASE_S + 1)
        finally:
            await asyncio.to_thread(broker.start)
        await play.settle(*play.instances)
        await play.wait_for_answers()


async def test_without_replicas_the_group_finds_another_owner(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with scene(broker, topics_prefix, tmp_path, "ab", replicas="1") as play:
        a, b = play.instances
        b.kill()
        await play.settle(a)
        await play.wait_for_answers()


def test_the_checker_detects_older_answers(tmp_path: Path) -> None:
    instance = Instance("a", tmp_path, {})
    checker = Checker([instance], KEYS)
    later = {"window_start": "2026-01-01T00:01:00Z", "epoch": 1, "version": 1}
    assert checker.check(instance, KEYS[0], NOTHING, later)
    assert checker.regressions == []
    floor = checker.delivered()[KEYS[0]]
    assert not checker.check(instance, KEYS[0], floor, {"type": "catching_up"})
    window, epoch = later | {"window_start": "2026-01-01T00:00:00Z", "version": 9}, later | {"epoch": 0, "version": 9}
    for earlier in (window, epoch, {"type": "never_seen"}):
        checker.check(instance, KEYS[0], floor, earlier)
    assert len(checker.regressions) == 3
