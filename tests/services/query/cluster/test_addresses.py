"""Two live instances with one address: the later one leaves, and an instance in place of a killed one stays."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from services.query.cluster.cluster import Cluster, ClusterDependencies
from services.query.cluster.instance import Instance, InstanceDependencies
from services.query.cluster.membership import InstanceIdentity
from services.query.errors import DuplicateAddressError
from services.runtime.broker_clock import BrokerClock
from tests.services.query.cluster.world import EPOCH, NOW, TIMING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.wire.announcement import Announcement

URL = "http://127.0.0.1:8090"


def instance(name: str, url: str = URL, run: int = 1) -> Instance:
    """An instance without states."""
    dependencies = InstanceDependencies({}, cast("Any", None), {}, lambda: NOW)
    return Instance(InstanceIdentity(name, url, name, run), TIMING, dependencies, 2, BrokerClock(lambda: 0.0))


def joined(*before: Announcement) -> tuple[Instance, list[Announcement]]:
    """The instance `b`, which has read these announcements and then its own first one."""
    later = instance("b")
    own = later.announce(0.0, EPOCH)
    for one in (*before, own):
        later.receive(one, 0.0)
    return later, [*before, own]


def test_the_later_one_of_two_instances_with_one_address_notices_it_and_the_earlier_one_stays() -> None:
    earlier = instance("a")
    first = earlier.announce(0.0, EPOCH)
    later, log = joined(first)
    for one in log:
        earlier.receive(one, 0.0)
    for at in (1.0, 2.0):
        one, other = earlier.announce(at, EPOCH), later.announce(at, EPOCH)
        for each in (earlier, later):
            each.receive(one, at)
            each.receive(other, at)
    assert (earlier.address_taken_by, later.address_taken_by) == (None, "a")


def test_an_instance_in_place_of_one_that_was_killed_stays() -> None:
    killed = instance("a")
    announced = [killed.announce(float(number), EPOCH) for number in range(5)]
    later, _ = joined(*announced[:4])
    later.receive(announced[4], 1.0)  # it was under way
    assert later.address_taken_by is None


def test_an_instance_that_leaves_or_has_another_address_is_no_conflict() -> None:
    leaving, other = instance("a"), instance("c", "http://127.0.0.1:8091")
    later, _ = joined(leaving.announce(0.0, EPOCH), other.announce(0.0, EPOCH))
    for at in (1.0, 2.0, 3.0):
        later.receive(other.announce(at, EPOCH), at)
    later.receive(leaving.leave(), 4.0)
    assert later.address_taken_by is None


class Others:
    """The topic of announcements, in which an earlier instance with the same address goes on."""

    def __init__(self) -> None:
        self.earlier = instance("a")
        self.own: list[Announcement] = []
        self.has_left = False

    def send(self, announcement: Announcement) -> None:
        self.own.append(announcement)

    async def run(self, receive: Callable[[Sequence[Announcement]], None]) -> None:
        receive([self.earlier.announce(0.0, EPOCH)])
        while True:
            await asyncio.sleep(0.001)
            receive([*self.own, self.earlier.announce(0.0, EPOCH)])
            self.own.clear()

    async def leave(self, _: Announcement) -> None:
        self.has_left = True


class Alone:
    """A consumer group that assigns nothing."""

    async def run(self, _: object) -> None:
        await asyncio.Event().wait()


async def test_the_service_ends_with_an_error_that_names_the_other_instance_and_the_setting() -> None:
    others = Others()
    cluster = Cluster(instance("b"), ClusterDependencies(cast("Any", Alone()), others, cast("Any", None)), 0.5)
    with pytest.raises(ExceptionGroup) as ended:
        await cluster.run()
    assert ended.group_contains(
        DuplicateAddressError, match=f"instance 'a' announces the address {URL} too.*STATELOOP_URL"
    )
    assert others.has_left
