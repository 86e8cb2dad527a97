"""ResponseCache are written in the order of the versions that they were computed from, whatever comes first."""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import Mock

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.metrics import worker as metrics
from contracts.model.condition import condition
from contracts.planning.plan import settled
from contracts.records.record import Record
from contracts.wire import Answer
from tests.deadline import DEADLINE_S
from tests.services.enrichment.calls.calling import fleet
from tests.services.enrichment.fleet import QUICK, START, Owner, app, owner, quote, snapshot, street
from tests.services.enrichment.in_memory import Gated, Log, running, until
from tests.services.enrichment.test_partition_state import new_state, queued

if TYPE_CHECKING:
    from contracts import Api
    from contracts.wire import Feedback, Snapshot

PLATES = "PQR"
MOST_ROUNDS = 200


class Loop(Log):
    """A log to which the job adds: each piece of feedback makes a snapshot, as the merge would."""

    def __init__(self) -> None:
        super().__init__([])
        self.states: dict[str, Snapshot] = {}
        self._merged = 0

    def drive(self, device: str, plate: str) -> None:
        """A device sends another plate."""
        former = self.states.get(device)
        version = former.version + 1 if former else 1
        self._publish(snapshot(version, plate, device, **(former.enrichments if former else {})))

    def merge(self, written: list[Feedback]) -> None:
        """Take in what was not merged yet."""
        for one in written[self._merged :]:
            facts = one.model_dump(include=set(Answer.model_fields) - {"result"})
            answer = Answer.model_validate(facts | {"result": (one.result or {}).get(one.enrichment)})
            now = self.states[one.device_id]
            present = now.enrichments.get(one.enrichment)
            best = answer if present is None or answer.version >= present.version else present
            answers = now.enrichments | {one.enrichment: best}
            self._publish(snapshot(now.version + 1, now.state["plate"], one.device_id, **answers))
        self._merged = len(written)

    def _publish(self, of: Snapshot) -> None:
        self.states[of.device_id] = of
        self.values.append(of.encode())


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(PLATES), st.sampled_from(PLATES)), max_size=12),
    in_flight=st.sampled_from([1, 2, 100]),
)
def test_answers_are_written_in_order_and_the_last_inputs_are_answered(
    steps: list[tuple[str, str, str]], in_flight: int
) -> None:
    log, gated = Loop(), Gated().let()
    asyncio.run(_drive(log, gated, steps, in_flight))
    versions: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for one in gated.feedback():
        versions[one.device_id, one.enrichment].append(one.version)
    assert all(found == sorted(set(found)) for found in versions.values()), versions


async def _drive(log: Loop, gated: Gated, steps: list[tuple[str, str, str]], in_flight: int) -> None:
    """Plates change while the calls of some plates hang, each until another one's turn."""
    gated.blocked = {plate: asyncio.Event() for plate in PLATES}
    async with running(log, gated, in_flight=in_flight):
        for device, plate, let in steps:
            log.drive(device, plate)
            await until(lambda: gated.counts.get(metrics.SNAPSHOTS) == len(log.values))
            log.merge(gated.feedback())
            gated.blocked[let].set()
            await asyncio.sleep(0)
            gated.blocked[let] = asyncio.Event()
        for event in gated.blocked.values():
            event.set()
        gated.blocked = {}
        await _settled(log, gated)


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(PLATES), st.booleans()), max_size=20),
    unfinished=st.sampled_from([8, 100]),
)
def test_an_api_that_comes_and_goes_changes_nothing_of_that(
    steps: list[tuple[str, str, bool]], unfinished: int
) -> None:
    log, gated = Loop(), Gated().let()
    asyncio.run(_flap(log, gated, steps, unfinished))
    versions: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for one in gated.feedback():
        versions[one.device_id, one.enrichment].append(one.version)
    assert all(found == sorted(set(found)) for found in versions.values()), versions
    assert gated.calls == len(gated.feedback()), "no call is made twice"


async def _flap(log: Loop, gated: Gated, steps: list[tuple[str, str, bool]], unfinished: int) -> None:
    """Plates change while the API comes and goes; waiting requests are deferred, the earlier the fewer may wait."""
    async with running(log, gated, unfinished=unfinished, in_flight=1):
        for device, plate, is_up in steps:
            gated.down = set() if is_up else {"registry"}
            if is_up:
                gated.back.set()
                gated.back = asyncio.Event()
            log.drive(device, plate)
            if not is_up:
                await until(lambda: gated.counts.get(metrics.SNAPSHOTS) == len(log.values))
            log.merge(gated.feedback())
        gated.down = set()
        gated.back.set()
        await _settled(log, gated)


async def _settled(log: Loop, gated: Gated) -> None:
    """Merge until the state of every device has the answers to its last inputs, and all is committed."""

    def done() -> bool:
        log.merge(gated.feedback())
        ended = all(settled(app, state, START) for state in log.states.values())
        return ended and (not log.values or len(log.values) in log.committed)

    await until(done)


async def test_a_later_answer_does_not_wait_for_an_earlier_one_that_hangs() -> None:
    log, gated = Log([snapshot(1, "hangs").encode(), snapshot(2, "P").encode()]), Gated().let()
    gated.blocked["hangs"] = asyncio.Event()
    async with running(log, gated):
        await until(lambda: 2 in log.committed)
        assert gated.counts.get(metrics.SUPERSEDED) == 2, "the owner and the quote of the first plate"
        assert gated.under_way == 0, "its calls were given up"
    assert {one.version for one in gated.feedback()} == {2}


async def test_the_result_of_a_function_that_catches_its_cancellation_is_dropped() -> None:
    async def stubborn(api: Api, plate: str) -> Owner:
        try:
            return Owner.model_validate(await owner.function(api, plate))
        except asyncio.CancelledError:
            return Owner(name="late")

    log, gated = Log([snapshot(1, "hangs").encode(), snapshot(2, "P").encode()]), Gated().let()
    gated.blocked["hangs"] = asyncio.Event()
    async with running(log, gated, fleet(QUICK, enrichments=(replace(owner, function=stubborn), street, quote))):
        await until(lambda: 2 in log.committed)
        await until(lambda: gated.under_way == 0)
    assert {one.version for one in gated.feedback()} == {2}


async def test_a_superseded_request_is_committed_with_the_later_one_only() -> None:
    log, gated = Log([snapshot(1, "hangs").encode(), snapshot(2, "P").encode()]), Gated()
    gated.answers.set()
    gated.blocked["hangs"] = asyncio.Event()
    async with running(log, gated):
        await until(lambda: gated.counts.get(metrics.SUPERSEDED) == 2)
        fetches = log.fetches
        await until(lambda: log.fetches > fetches + 5)
        assert set(log.committed) <= {0}
        gated.acks.set()
        await until(lambda: 2 in log.committed)


async def test_a_request_that_waits_for_its_api_uses_the_last_inputs_only() -> None:
    log, gated = Log([snapshot(n, f"P{n}").encode() for n in range(1, 101)]), Gated().let()
    gated.down = {"registry"}
    async with running(log, gated):
        await until(lambda: gated.counts.get(metrics.SNAPSHOTS) == 100)
        assert gated.counts.get(metrics.COALESCED) == 2 * 99
        gated.down.clear()
        gated.back.set()
        await until(lambda: 100 in log.committed)
    assert gated.calls == 2
    assert {one.version for one in gated.feedback()} == {100}


def test_a_coalesced_request_starts_in_a_closing_partition_if_one_of_its_first_snapshot_has_started() -> None:
    one = new_state()
    owner, quote = queued(one, app, snapshot(1))
    one.start(quote, Mock(Task))
    again = one.plan(app, snapshot(2), START).requests
    one.partition.track(2, 1)
    assert [request.enrichment for request in again] == ["owner"], "the quote is under way"
    assert one.add(Record("snapshots", 0, 2, 0, b"d", b"{}"), again[0], START) is None
    one.partition.close()
    assert one.can_start(owner), "the next worker would begin at its offset, and repeat the quote"


async def test_one_that_is_on_its_way_into_kafka_is_left_to_arrive() -> None:
    log, gated = Log([snapshot(1, "P1").encode(), snapshot(2, "P2").encode()]), Gated()
    gated.blocked["P2"] = asyncio.Event()
    gated.answers.set()
    async with running(log, gated):
        async with asyncio.timeout(DEADLINE_S):
            await until(lambda: len(gated.written) == 2)
        gated.blocked["P2"].set()
        await until(lambda: len(gated.written) == 4)
        gated.acks.set()
        await until(lambda: 2 in log.committed)
    assert [one.version for one in gated.feedback()] == [1, 1, 2, 2]
    assert gated.counts.get(metrics.SUPERSEDED) == 0


async def test_a_skipped_request_does_not_wait_in_the_queue_of_a_replaced_one() -> None:
    """An API is away; a device's first plate waits for it, and its second is one without requests."""
    unasked = fleet(QUICK, enrichments=(replace(owner, when=condition("owner", known, {"plate": str})), street, quote))
    log, gated = Log([snapshot(1, "P1").encode(), snapshot(2, "none").encode()]), Gated().let()
    gated.down = {"registry"}
    async with running(log, gated, unasked, stop_within=0):
        await until(lambda: len(gated.feedback()) == 2)
        statuses = {one.enrichment: (one.status, one.version) for one in gated.feedback()}
        assert statuses == {"owner": ("skipped", 2), "street": ("skipped", 2)}
        assert set(log.committed) <= {0}, "the quote waits"
    assert gated.calls == 0


def known(plate: str) -> bool:
    return plate != "none"
