"""The sampler: what it scrapes, and the end offsets that it reads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession, web
from typing_extensions import override

from contracts.metrics import job
from services.query.cluster import PartitionStatus, Role
from services.query.console.loops import Loops
from services.query.console.sampler import Sampler
from services.query.lookup.authentication import ANONYMOUS
from services.runtime.kafka.admin import KafkaAdmin
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.query.console.departing import KEYS, SUITE
from tests.services.query.console.exposed import Exposed, exposed
from tests.services.query.console.test_dead_letters import create, write
from tests.services.query.in_memory import MemoryRouting, a_state, dependencies_of

if TYPE_CHECKING:
    from services.query.console.observation import EndOffsets
    from services.query.dependencies import Dependencies
    from tests.services.tools.broker.embedded import EmbeddedBroker


class WithoutBroker(Sampler):
    """A sampler whose broker does not respond."""

    def __init__(self, dependencies: Dependencies) -> None:
        super().__init__(dependencies, KafkaAdmin({}, "none"), ())

    @override
    def read_end_offsets(self) -> EndOffsets | None:
        return None


async def test_a_target_is_scraped_once_for_all_applications() -> None:
    requests: Counter[str] = Counter()
    keys: Exposed = {job.STATE_KEYS: {("flights", "state"): 3.0, ("departures", "state"): 4.0}}

    async def metrics(request: web.Request) -> web.Response:
        requests[request.path] += 1
        return web.Response(text=exposed(keys))

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics)])
    runner = web.AppRunner(application)
    await runner.setup()
    loops = Loops(SUITE, 2.0)
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        (address,) = runner.addresses
        dependencies = dependencies_of(scrape_targets={"job": [f"http://127.0.0.1:{address[1]}"]})
        async with ClientSession() as session:
            loops.record(await WithoutBroker(dependencies).observe(session))
    finally:
        await runner.cleanup()
    assert requests == {"/metrics": 1}
    answers = [loops.get(name, ANONYMOUS).history.answer(0) for name in KEYS]
    assert [answer and answer.job[0].keys for answer in answers] == [3, 4]


async def test_a_state_has_the_lag_of_the_partitions_for_which_the_instance_may_answer() -> None:
    routing = MemoryRouting()
    routing.own = PartitionStatus(Role.STANDBY, 2)
    routing.others = {1: PartitionStatus(Role.ELSEWHERE, 100), 2: PartitionStatus(Role.CATCHING_UP, 30)}
    async with ClientSession() as session:
        (found,) = (await WithoutBroker(dependencies_of(a_state(), routing=routing)).observe(session)).states
    assert (found.name, found.topic, found.lag, found.unowned) == ("flights", "flights-topic", 34, 2)
    assert found.roles == {"standby": 2, "elsewhere": 1, "catching_up": 1}


@pytest.mark.kafka
def test_the_end_offsets_of_topics_are_read(broker: EmbeddedBroker, topics_prefix: str) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    first, later = f"{topics_prefix}events", f"{topics_prefix}snapshots"
    create(broker, first, 2)
    sampler = Sampler(dependencies_of(), KafkaAdmin(client, "test"), [first, later])
    write(broker, first, [b"1", b"2", b"3"], partition=1)
    assert sampler.read_end_offsets() == {first: {0: 0, 1: 3}}
    create(broker, later, 1)
    wait_until(lambda: later in (sampler.read_end_offsets() or {}), "the other topic exists", DEADLINE_S)
    write(broker, later, [b"1"])
    assert sampler.read_end_offsets() == {first: {0: 0, 1: 3}, later: {0: 1}}


@pytest.mark.slow
def test_an_unreachable_broker_has_no_end_offsets() -> None:
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"}, "test")
    assert Sampler(dependencies_of(), admin, ["events"]).read_end_offsets() is None
