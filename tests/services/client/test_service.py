"""The client against the service itself, over a real broker, also while the owner of what it watches is killed."""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack, aclosing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contracts.wire.partition import partition
from services.client import Client, Expired, Found, Left, NeverSeen, NotArrivedError, RejectedError, WatchFilter
from tests.deadline import DEADLINE_S
from tests.services.client.test_watch import following, versions
from tests.services.query.fleet import snapshot
from tests.services.query.running import PARTITIONS, Fleet
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.forked import Forked
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka
CARS = [f"car/{number}" for number in range(40)]
LAST = 30
KILLED_AT = 10


@pytest.fixture
def fleet(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Fleet:
    return Fleet(broker.bootstrap, topics_prefix, tmp_path)


def url(fleet: Fleet) -> str:
    return f"http://127.0.0.1:{fleet.port}"


@contextmanager
def second_instance(fleet: Fleet, folder: Path) -> Iterator[tuple[str, Forked]]:
    """Start a second instance; give its address and its process, which the test may kill."""
    port = free_port_pair()
    process = fleet.start(
        STATELOOP_INSTANCE="two", STATELOOP_HTTP_PORT=str(port), STATELOOP_QUERY_DATA=str(folder / "two")
    )
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait(DEADLINE_S)


async def test_the_client_reads_responses_of_the_service(fleet: Fleet) -> None:
    fleet.publish(*(snapshot(key, version, plate=f"P{version}") for key in CARS for version in (1, 2, 3, 4)))
    with fleet.running():
        async with Client(url(fleet)) as states:
            found = await states.get("cars", CARS[1], min_version=4, wait=20.0)
            assert isinstance(found, Found)
            assert (found.version, found.value["state"]) == (4, {"plate": "P4"})
            assert found.tag == "1767225600000.0.4"
            assert (found.instance, found.source.topic) == ("one", fleet.topics.snapshots)
            with pytest.raises(NotArrivedError, match=r"The latest version here is 1767225600000\.0\.4"):
                await states.get("cars", CARS[1], min_version=f"{found.order[0]}.5")
            assert isinstance(await states.get("cars", "car/none"), NeverSeen)
            earlier = await states.get("cars", CARS[1], as_of=3, fields=["version", "state.plate"])
            assert isinstance(earlier, Found)
            assert earlier.value == {"version": 3, "state": {"plate": "P3"}}
            many = await states.get_many("cars", [*CARS, "car/none"], fields=["state.plate"])
            assert [one.key for one in many] == [*CARS, "car/none"]
            assert [one.value for one in many[:-1] if isinstance(one, Found)] == [{"state": {"plate": "P4"}}] * 40
            assert versions(await states.versions("cars", CARS[1])) == [2, 3, 4]
            assert [key async for key in states.keys("cars", where={"state.plate": "P4"})] == sorted(CARS)
            assert [key async for key in states.keys("cars", prefix="car/3")] == sorted(
                one for one in CARS if one.startswith("car/3")
            )
            (cars,) = await states.states()
            assert (cars.name, cars.partitions, cars.keys) == ("cars", 4, 40)
            with pytest.raises(RejectedError, match="The states are: cars"):
                await states.get("ships", "k")
            with pytest.raises(RejectedError, match="write path:value of an index"):
                await states.page("cars", where={"state.colour": "red"})


async def test_a_producer_reads_the_state_that_has_merged_its_event(fleet: Fleet) -> None:
    place = partition(b"car/1", PARTITIONS)
    fleet.publish(snapshot("car/1", 1).model_copy(update={"event_offset": 11}))
    with fleet.running():
        async with Client(url(fleet)) as states:
            first = await states.get("cars", "car/1", min_offset=(place, 11), wait=20.0)
            assert isinstance(first, Found)
            assert first.value["event_offset"] == 11
            with pytest.raises(NotArrivedError, match="The latest event merged here has offset 11") as behind:
                await states.get("cars", "car/1", min_offset=(place, 12))
            assert behind.value.latest_offset == 11
            with pytest.raises(RejectedError, match=f"in partition {place} "):
                await states.get("cars", "car/1", min_offset=((place + 1) % PARTITIONS, 11))
            waiting = asyncio.create_task(states.get("cars", "car/1", min_offset=(place, 12), wait=20.0))
            fleet.publish(*(snapshot("car/1", 1 + n).model_copy(update={"event_offset": 10 + n}) for n in (1, 2)))
            found = await waiting
            assert isinstance(found, Found)
            assert (found.version, found.value["event_offset"]) == (3, 12)


async def test_changes_are_delivered(fleet: Fleet) -> None:
    fleet.publish(snapshot("car/1", 1, plate="P1"))
    with fleet.running():
        async with Client(url(fleet)) as states:
            await states.get("cars", "car/1", min_version=1, wait=20.0)
            landed = WatchFilter("cars", where={"state.plate": "P1"})
            async with (
                aclosing(states.watch("cars", "car/1")) as one,
                aclosing(states.watch_many(landed, WatchFilter("cars", "car/2"))) as many,
            ):
                assert versions(await following(one, 1)) == [1]
                first = await following(many, 2)
                assert {type(update) for update in first} == {Found, NeverSeen}
                fleet.publish(snapshot("car/1", 2, plate="P2"), snapshot("car/2", 1))
                assert versions(await following(one, 1)) == [2]
                later = await following(many, 2)
                assert {(type(update), update.key) for update in later} == {(Left, "car/1"), (Found, "car/2")}
                fleet.publish(snapshot("car/3", 1, timedelta(minutes=90)))
                (ended,) = await following(one, 1)
                assert isinstance(ended, Expired)
            assert isinstance(await states.get("cars", "car/1"), Expired)


async def test_watches_and_reads_continue_when_the_owner_is_killed(fleet: Fleet, tmp_path: Path) -> None:
    """All readers get the last version of each key, and none an earlier version after a later one."""
    fleet.publish(*(snapshot(key, 1) for key in CARS))
    with fleet.running(), ExitStack() as stack:
        other, process = stack.enter_context(second_instance(fleet, tmp_path))
        async with asyncio.timeout(3 * DEADLINE_S), Client([url(fleet), other], deadline=DEADLINE_S) as states:
            await _both_own(states)
            watches = [states.watch("cars", key) for key in CARS[:10]]
            every = states.watch_many(WatchFilter("cars", prefix="car/"))
            async with asyncio.TaskGroup() as tasks:
                reads = tasks.create_task(_read(states))
                singles = [tasks.create_task(_until_last(watch, 1)) for watch in watches]
                whole = tasks.create_task(_until_last(every, len(CARS)))
                for version in range(2, LAST + 1):
                    await asyncio.to_thread(fleet.publish, *(snapshot(key, version) for key in CARS))
                    if version == KILLED_AT:
                        process.send_signal(signal.SIGKILL)
            for delivered in [*(single.result() for single in singles), whole.result(), reads.result()]:
                for key, seen in delivered.items():
                    assert seen == sorted(seen), key
                    assert seen[-1] == LAST, key
            assert len(reads.result()) == len(whole.result()) == len(CARS)


async def _both_own(states: Client) -> None:
    """Wait until each instance owns some keys."""
    owners: set[str] = set()
    while owners != {"one", "two"}:
        found = [await states.get("cars", key, min_version=1, wait=5.0) for key in CARS]
        owners = {one.instance for one in found if isinstance(one, Found) and one.role == "owner"}


async def _read(states: Client) -> dict[str, list[int]]:
    """Read each key, alone and in batches, until all have the last version; return the versions of each."""
    seen: dict[str, list[int]] = {key: [] for key in CARS}
    while any(not read or read[-1] < LAST for read in seen.values()):
        for answer in [await states.get("cars", CARS[0]), *await states.get_many("cars", CARS)]:
            assert isinstance(answer, Found)
            seen[answer.key].append(answer.version)
    return seen


async def _until_last(updates: AsyncGenerator[Any, None], keys: int) -> dict[str, list[int]]:
    """Follow a watch until so many keys have the last version; return the versions of each key."""
    seen: dict[str, list[int]] = {}
    async with aclosing(updates):
        async for update in updates:
            seen.setdefault(update.key, []).append(update.version)
            if sum(one[-1] == LAST for one in seen.values()) == keys:
                return seen
    raise AssertionError("a watch does not end")
