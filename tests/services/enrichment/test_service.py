"""Worker processes against a real broker and a real API."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr, ValidationError

from services.enrichment.settings import EnrichmentSettings
from tests.deadline import DEADLINE_S
from tests.services.enrichment.cluster import GROUPS, Cluster, condition
from tests.services.enrichment.fleet import snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from contracts.wire import Feedback
    from tests.forked import Forked
    from tests.services.enrichment.registry import Registry
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kills_broker

DEVICES = 200
STEADY = (("owner", "result"), ("quote", "result"))
both_protocols = pytest.mark.parametrize("group", list(GROUPS))
STOPPED_S = 20
FREQUENT_STATS = {"stats_every": "0.1"}
LONG_SESSION = '{"session.timeout.ms": "300000"}'
"""Longer than the broker is away, so that the worker keeps its partitions."""


@pytest.fixture
def cluster(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Cluster:
    return Cluster(broker.bootstrap, topics_prefix, tmp_path)


def everybody(found: list[Feedback]) -> bool:
    """Whether each device has its owner and its quote."""
    return len({(one.device_id, one.enrichment) for one in found}) == 2 * DEVICES


def cars() -> list[tuple[str, bytes | None]]:
    return [(f"d{n}", snapshot(1, f"P{n}", f"d{n}").encode()) for n in range(DEVICES)]


def owners_twice(registry: Registry) -> int:
    return sum(calls == 2 for path, calls in registry.calls.items() if path.startswith("/owners/"))


async def stop(*processes: Forked) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    assert [await asyncio.to_thread(process.wait, DEADLINE_S) for process in processes] == [0] * len(processes)


async def test_one_worker_from_snapshot_to_feedback(cluster: Cluster, registry: Registry) -> None:
    cluster.produce(("d1", b"rubbish"), ("d1", None))
    cluster.publish(snapshot(1, "P1"), snapshot(2, "P1"), snapshot(1, "P1"))
    with cluster.worker(registry.url) as process:
        await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 2)
        cluster.publish(snapshot(3, "missing"))  # now: an answer to it that came first would overtake the others
        found = await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 4)
        await condition(lambda: cluster.committed() == 6, "all committed")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0
    answers = sorted((one.enrichment, one.version, one.status) for one in found)
    assert answers == [("owner", 1, "result"), ("owner", 3, "absence"), ("quote", 1, "result"), ("quote", 3, "result")]
    assert registry.calls == {"/owners/P1": 1, "/owners/missing": 1, "/quotes/P1": 1, "/quotes/missing": 1}
    (dead_letter,) = await asyncio.to_thread(cluster.read, cluster.topics.dead_letters, bool)
    assert (dead_letter["reason"], dead_letter["offset"], dead_letter["head"]) == ("undecodable_snapshot", 0, "rubbish")


async def test_nothing_is_committed_before_its_answer(cluster: Cluster, registry: Registry) -> None:
    registry.gate.clear()
    cluster.publish(snapshot(1, "slow-P1"), snapshot(2, "slow-P1"), snapshot(3, "slow-P1"))
    with cluster.worker(registry.url, commit_every="0") as process:
        await condition(lambda: registry.calls["/owners/slow-P1"] > 0, "the call was made")
        await asyncio.to_thread(cluster.feedback, lambda found: [one.enrichment for one in found] == ["quote"])
        process.kill()
        await asyncio.to_thread(process.wait, DEADLINE_S)
    assert cluster.committed() == 0
    registry.gate.set()
    with cluster.worker(registry.url):
        await condition(lambda: cluster.committed() == 3, "all committed")
    found = await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 3)
    assert {one.enrichment for one in found} == {"owner", "quote"}


async def test_a_permanent_failure_is_written_as_feedback_and_dead_letter(cluster: Cluster, registry: Registry) -> None:
    cluster.publish(snapshot(1, "down"))
    with cluster.worker(registry.url):
        found = await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 2)
        (dead_letter,) = await asyncio.to_thread(cluster.read, cluster.topics.dead_letters, bool)
    assert {one.enrichment: one.reason for one in found} == {"owner": "status 503", "quote": None}
    assert (dead_letter["reason"], dead_letter["detail"]) == ("enrichment_failed", "owner: status 503")
    assert (dead_letter["enrichment"], dead_letter["version"], dead_letter["attempts"]) == ("owner", 1, 4)
    assert dead_letter["response"] == "we are down"
    assert json.loads(dead_letter["head"])["device_id"] == "d1"


async def test_a_record_with_any_key_is_buried_and_stops_no_worker(cluster: Cluster, registry: Registry) -> None:
    cluster.produce(*((key, b"rubbish") for key in ("k" * 1_048_400, "c" * 8_000_000)))
    cluster.publish(snapshot(1, "P1"))
    with cluster.worker(registry.url):
        await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 2)
        dead_letters = await asyncio.to_thread(cluster.read, cluster.topics.dead_letters, lambda found: len(found) == 2)
        await condition(lambda: cluster.committed() == 3, "all committed")
    assert {dead_letter["reason"] for dead_letter in dead_letters} == {"undecodable_snapshot"}


@both_protocols
async def test_two_workers_share_the_work(cluster: Cluster, registry: Registry, group: str) -> None:
    registry.latency = 0.02
    settings = FREQUENT_STATS | GROUPS[group]
    with cluster.worker(registry.url, **settings) as one, cluster.worker(registry.url, **settings) as two:
        await condition(lambda: cluster.stats("partitions") == {0: 2, 1: 2}, "each has two partitions")
        cluster.produce(*cars())
        await asyncio.to_thread(cluster.feedback, everybody)
        await condition(lambda: cluster.committed() == DEVICES, "all committed")
        await stop(one, two)
    assert set(registry.calls.values()) == {1}, "without a fault no call is made twice"


async def test_a_worker_is_killed_in_mid_work_and_another_finishes(cluster: Cluster, registry: Registry) -> None:
    registry.latency = 0.1
    cluster.produce(*cars())
    with cluster.worker(registry.url, in_flight="20") as process:
        await condition(lambda: registry.calls.total() >= 100, "in mid-work")
        process.kill()
        await asyncio.to_thread(process.wait, DEADLINE_S)
    begun, committed = registry.calls.total(), cluster.committed()
    assert committed < DEVICES
    with cluster.worker(registry.url):
        found = await asyncio.to_thread(cluster.feedback, everybody)
        await condition(lambda: cluster.committed() == DEVICES, "all committed")
    assert {(one.enrichment, one.status) for one in found} == set(STEADY)
    assert registry.calls.total() <= 2 * DEVICES + begun - 2 * committed, "only uncommitted requests are repeated"


async def test_sigterm_finishes_running_requests(cluster: Cluster, registry: Registry) -> None:
    registry.latency = 0.3
    cluster.produce(*cars()[:10])
    with cluster.worker(registry.url) as process:
        await condition(lambda: registry.calls.total() == 20, "all under way")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0
    assert cluster.committed() == 10
    assert set(registry.calls.values()) == {1}


@both_protocols
async def test_partitions_move_in_mid_work_to_a_worker_that_joins(
    cluster: Cluster, registry: Registry, group: str
) -> None:
    registry.latency = 0.5
    cluster.produce(*cars())
    settings = FREQUENT_STATS | GROUPS[group]
    with cluster.worker(registry.url, in_flight="4", **settings) as one:
        await condition(lambda: registry.calls.total() >= 20, "in mid-work")
        with cluster.worker(registry.url, in_flight="4", **settings) as two:
            await condition(lambda: cluster.stats("partitions") == {0: 2, 1: 2}, "each has two partitions")
            assert cluster.committed() < DEVICES, "still in mid-work"
            registry.latency = 0
            found = await asyncio.to_thread(cluster.feedback, everybody)
            await condition(lambda: cluster.committed() == DEVICES, "all committed")
            await stop(one, two)
    assert len(found) == 2 * DEVICES
    assert set(registry.calls.values()) == {1}, "what was under way was waited for"


@both_protocols
async def test_requests_that_cannot_finish_before_a_rebalance_are_abandoned(
    cluster: Cluster, registry: Registry, group: str
) -> None:
    registry.gate.clear()
    cluster.produce(*cars())
    settings = FREQUENT_STATS | GROUPS[group]
    with cluster.worker(registry.url, drain="0", **settings) as one:
        await condition(lambda: cluster.stats("answers") == {0: {"result": DEVICES}}, "no more than owners is open")
        with cluster.worker(registry.url, drain="0", **settings) as two:
            moved = "the other began all that was given up"
            await condition(lambda: 0 < cluster.stats("abandoned")[0] == owners_twice(registry), moved)
            assert cluster.committed() == 0
            registry.gate.set()
            await condition(lambda: cluster.committed() == DEVICES, "all committed")
            await stop(one, two)
    found = await asyncio.to_thread(cluster.feedback, everybody)
    owners = [answer.device_id for answer in found if answer.enrichment == "owner"]
    assert len(owners) == len(set(owners)) == DEVICES, "an abandoned owner was answered by the other worker only"
    assert max(registry.calls.values()) == 2
    again = 2 * cluster.stats("abandoned")[0]
    assert registry.calls.total() == 2 * DEVICES + again, "only the abandoned requests, and their quotes"


@both_protocols
async def test_a_worker_that_slept_loses_its_partitions_and_goes_on(
    cluster: Cluster, registry: Registry, group: str
) -> None:
    registry.gate.clear()
    settings = FREQUENT_STATS | GROUPS[group]
    with cluster.worker(registry.url, **settings) as one, cluster.worker(registry.url, **settings) as two:
        await condition(lambda: cluster.stats("partitions") == {0: 2, 1: 2}, "each has two partitions")
        cluster.produce(*cars())
        await condition(lambda: registry.calls.total() >= 2 * DEVICES, "all under way")
        one.send_signal(signal.SIGSTOP)
        await condition(lambda: cluster.stats("partitions")[1] == 4, "the other has them all")
        await condition(lambda: owners_twice(registry) > 0, "and begins what was not committed")
        one.send_signal(signal.SIGCONT)
        await condition(lambda: cluster.stats("abandoned")[0] > 0, "the one notices")
        assert cluster.committed() == 0
        registry.gate.set()
        found = await asyncio.to_thread(cluster.feedback, everybody)
        await condition(lambda: cluster.committed() == DEVICES, "all committed")
        await stop(one, two)
    assert {(answer.enrichment, answer.status) for answer in found} == set(STEADY)


def test_options_that_the_group_protocol_does_not_allow_are_refused() -> None:
    for option in ("session.timeout.ms", "group.instance.id"):
        options = {option: SecretStr("1")}
        assert EnrichmentSettings(application="fleet", kafka_options=options).group_protocol == "classic"
        with pytest.raises(ValidationError, match="leave it out"):
            EnrichmentSettings(application="fleet", group_protocol="consumer", kafka_options=options)


async def test_an_api_without_address_is_refused(cluster: Cluster) -> None:
    with cluster.worker("", apis="{}") as process:
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 1
    assert """write STATELOOP_APIS='{"registry": "https://…"}'""" in cluster.log()


async def test_in_an_outage_of_the_broker_a_worker_waits_and_another_can_be_stopped(
    cluster: Cluster, broker: EmbeddedBroker, registry: Registry, topics_prefix: str, tmp_path: Path
) -> None:
    (logs := tmp_path / "other").mkdir()
    other = Cluster(broker.bootstrap, f"{topics_prefix}other.", logs)
    other.publish(snapshot(1))
    registry.latency = 0.1
    await asyncio.to_thread(cluster.produce, *cars())
    with other.worker(registry.url, stop_within="1") as stopped:
        await condition(lambda: other.committed() == 1, "at work")
        before = registry.calls.total()
        with cluster.worker(registry.url, in_flight="20", kafka_options=LONG_SESSION) as process:
            await condition(lambda: registry.calls.total() >= before + 100, "in mid-work")
            broker.kill()
            try:
                stopped.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(stopped.wait, STOPPED_S) == 0, other.log()
            finally:
                await asyncio.to_thread(broker.start)
            await asyncio.to_thread(cluster.feedback, everybody)
            await condition(lambda: cluster.committed() == DEVICES, "all committed")
            assert process.poll() is None, cluster.log()
    assert registry.calls.total() == before + 2 * DEVICES, "the worker remembers its requests"
