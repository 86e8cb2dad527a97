"""The kinds of process in one group, on a real broker, and a broker that does not describe a group."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest

from contracts.settings import WorkerSettings
from examples.flights.application import app as flights
from services.runtime import topic_check
from services.runtime.errors import KafkaRequestError, SharedGroupError
from services.runtime.group_check import GroupCheck
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.values import GroupMember, NewTopic
from services.runtime.worker.subscription import member_options, subscription
from tests.deadline import DEADLINE_S
from tests.simulation.kafka.members import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from services.runtime.kafka.interfaces import Admin
    from tests.services.tools.broker.embedded import EmbeddedBroker

PARTITIONS = 4


class Described:
    """An admin client whose broker returns these members, or refuses."""

    def __init__(self, *members: GroupMember) -> None:
        self.members_of: Callable[[], tuple[GroupMember, ...]] = lambda: members

    def members(self, *_: object) -> tuple[GroupMember, ...]:
        return self.members_of()


def check(name: str, admin: Described) -> GroupCheck:
    return GroupCheck(name, "g", "snapshots", cast("Admin", admin), print)


@pytest.mark.parametrize(
    "member",
    [
        GroupMember("stateloop-derive", frozenset({"snapshots"})),
        GroupMember("of the user", frozenset({"snapshots"})),
        GroupMember("stateloop-enrichment", frozenset({"alerts"})),
        GroupMember("stateloop-enrichment", frozenset()),
    ],
)
def test_members_of_the_same_kind_or_of_an_unknown_one_or_of_other_topics_are_accepted(member: GroupMember) -> None:
    check("derive", Described(member)).check()


@pytest.mark.parametrize(("client_id", "command"), [("enrichment", "worker"), ("sink", "sink"), ("group", "query")])
def test_a_member_of_another_kind_is_named(client_id: str, command: str) -> None:
    member = GroupMember(f"stateloop-{client_id}", frozenset({"snapshots"}))
    with pytest.raises(SharedGroupError, match=f"stateloop {command}.*STATELOOP_GROUP") as caught:
        check("derive", Described(member)).check()
    assert (caught.value.group, caught.value.topic) == ("g", "snapshots")


def test_a_worker_that_may_not_describe_its_group_goes_on_and_warns_once() -> None:
    def refuse() -> tuple[GroupMember, ...]:
        raise KafkaRequestError("describe the group g", "GROUP_AUTHORIZATION_FAILED", "not authorized")

    admin, warnings = Described(), list[str]()
    admin.members_of = refuse
    checked = GroupCheck("derive", "g", "snapshots", cast("Admin", admin), warnings.append)
    checked.check()
    checked.check()
    assert warnings == ["the members of the group g are unknown, and not checked (not authorized)"]


async def run_two(kafka: KafkaClients, topic: str, names: tuple[str, str], until: Callable[[list[int]], bool]) -> None:
    """Let two members of one group, that start at once, read until this is true of what they own."""
    settings = WorkerSettings(application="")
    options: Mapping[str, str] = member_options({})
    members = [
        Member(
            kafka.consumer(
                name,
                subscription(
                    settings,
                    kafka,
                    flights,
                    name=name,
                    group=topic,
                    topics=[topic],
                    drain=timedelta(seconds=1),
                    options=options,
                ),
            )
        )
        for name in names
    ]
    loop = asyncio.get_running_loop()
    try:
        for member in members:
            member.consumer.subscribe(member, loop)
        async with asyncio.timeout(DEADLINE_S):
            while not until([len(member.ours) for member in members]):
                await asyncio.gather(*(member.fetch() for member in members))
        shared_at = loop.time()
        while loop.time() < shared_at + 3 * topic_check.RECHECK_S:
            await asyncio.gather(*(member.fetch() for member in members))
    finally:
        for member in members:
            await member.consumer.close()


@pytest.fixture
def kafka(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> KafkaClients:
    monkeypatch.setattr(topic_check, "RECHECK_S", 0.3)
    clients = KafkaClients({"bootstrap.servers": broker.bootstrap})
    clients.admin("test").create([NewTopic(f"{topics_prefix}snapshots", PARTITIONS, 1, {})])
    return clients


@pytest.mark.kafka
async def test_two_kinds_that_join_one_group_at_once_are_refused(kafka: KafkaClients, topics_prefix: str) -> None:
    with pytest.raises(SharedGroupError, match="set STATELOOP_GROUP to a different group for each command"):
        await run_two(kafka, f"{topics_prefix}snapshots", ("enrichment", "derive"), lambda owned: 0 not in owned)


@pytest.mark.kafka
async def test_two_members_of_one_kind_share_the_partitions(kafka: KafkaClients, topics_prefix: str) -> None:
    await run_two(
        kafka, f"{topics_prefix}snapshots", ("derive", "derive"), lambda owned: owned == [PARTITIONS // 2] * 2
    )


@pytest.mark.kafka
def test_a_group_that_does_not_exist_has_no_members(kafka: KafkaClients, topics_prefix: str) -> None:
    assert list(kafka.admin("test").members(f"{topics_prefix}absent")) == []
