"""A worker that delivers alerts, in memory: each event once, in the order of its alert, whatever fails."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import override

from contracts import Breaker
from contracts.alerts.deliveries import events
from contracts.metrics import worker as metrics
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.records.record import Record
from contracts.wire.alert_record import AlertEvent
from services.enrichment.calls.assembly import assemble_webhook
from services.enrichment.calls.response import Response
from services.enrichment.calls.suspension import FailureLimits
from services.enrichment.webhooks import DeliveryPlanner
from tests.services.enrichment.alerted import APP, PATIENT, WEBHOOK, crossing, crossings
from tests.services.enrichment.fleet import START
from tests.services.enrichment.in_memory import Gated, Log, at_work, until
from tests.services.enrichment.test_partition_state import new_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from contracts import Policy
    from contracts.wire import DeadLetter
    from contracts.wire.alert_record import AlertRecord
    from services.enrichment.calls.transport import Post

DEVICES = 20
FEW = 50
FIRST = 20
LIMITS = FailureLimits(window=1000, share=0.95, first=FIRST, trial_s=0.01)


class Receiving:
    """Receives deliveries in memory, answers them by `status`, and notes what it accepts. Implements Transport."""

    def __init__(self, status: Callable[[AlertEvent], int], latency_s: float = 0.0) -> None:
        self.status = status
        self.latency_s = latency_s
        self.accepted: list[AlertEvent] = []
        self.keys: list[str] = []

    async def get(self, target: str, within: float) -> Response:
        raise AssertionError((target, within))

    async def post(self, post: Post, within: float) -> Response:  # noqa: ARG002  # of Transport
        event = AlertEvent.model_validate_json(post.content)
        assert post.headers["Idempotency-Key"] == event.idempotency_key
        await asyncio.sleep(random.random() * self.latency_s)
        status = self.status(event)
        if status == 200:
            self.accepted.append(event)
        return Response(status, b"", retry_after="0")


class Delivering(Gated):
    """The producer and the metrics of the worker."""

    def __init__(self, values: Sequence[AlertRecord]) -> None:
        super().__init__()
        self.log = Log([value.encode() for value in values], APP.topics.derived("too_high"))
        self.log.batch = FEW

    @override
    def dead_letters(self) -> list[DeadLetter]:
        return [dead_letter for dead_letter in super().dead_letters() if dead_letter.reason == "delivery_failed"]


@asynccontextmanager
async def delivering(
    delivering: Delivering, receiving: Receiving, policy: Policy = PATIENT, **settings: Any
) -> AsyncIterator[None]:
    """Run a worker that delivers these records."""
    (alerts,), counts, webhook = APP.alerts, Counts(CATALOGUE), WEBHOOK.__class__("pager", "/hooks", policy)
    calls = assemble_webhook(webhook, alerts.name, receiving, counts, limits=LIMITS)
    delivering.counts = counts
    async with at_work(
        APP,
        delivering.log,
        caller=calls.caller,
        availability=calls.availability,
        producer=delivering.let(),
        counts=counts,
        planner=DeliveryPlanner(APP, alerts.name, webhook, counts),
        stats_every=0.01,
        **settings,
    ):
        yield


def expected(records: Sequence[AlertRecord]) -> list[AlertEvent]:
    return [event for record in records for event in events("too_high", record)]


def assert_delivered(receiving: Receiving, records: Sequence[AlertRecord]) -> None:
    """Each event once, and those of an alert in their order."""
    assert sorted(receiving.accepted, key=AlertEvent.encode) == sorted(expected(records), key=AlertEvent.encode)
    seen: set[str] = set()
    for event in receiving.accepted:
        assert (event.event == "closed") == (event.id in seen)
        seen.add(event.id)


@pytest.mark.parametrize("seed", range(3))
async def test_each_event_is_delivered_once_and_in_order_while_calls_fail(seed: int) -> None:
    draw, records = random.Random(seed), crossings(DEVICES)
    one = Delivering(records)
    receiving = Receiving(lambda _: draw.choice([200, 200, 503]), latency_s=0.005)
    async with delivering(one, receiving, recent_entries=1, in_flight=draw.choice([1, 3, 100])):
        await until(lambda: one.log.confirmed == {0: len(records)})
    assert_delivered(receiving, records)
    assert one.written == []


async def test_nothing_is_missing_after_an_outage_in_which_deliveries_were_deferred() -> None:
    records, is_down = crossings(40 * DEVICES), True
    one, receiving = Delivering(records), Receiving(lambda _: 503 if is_down else 200)
    async with delivering(one, receiving, unfinished=FEW, in_flight=FEW // 5):
        await until(lambda: one.counts.get(metrics.DEFERRED, "pager") > DEVICES)
        assert (receiving.accepted, one.log.confirmed.get(0, 0)) == ([], 0)
        is_down = False
        await until(lambda: one.log.confirmed == {0: len(records)})
    assert_delivered(receiving, records)


async def test_a_delivery_that_is_refused_is_a_dead_letter_and_the_next_one_of_the_alert_is_sent() -> None:
    records = [record for number in range(3) for record in crossing(f"sensor-{number}", 1)]
    one = Delivering(records)
    receiving = Receiving(lambda event: 404 if (event.device_id, event.event) == ("sensor-1", "opened") else 200)
    async with delivering(one, receiving):
        await until(lambda: one.log.confirmed == {0: len(records)})
    refused = expected(records)[2]
    assert {*map(AlertEvent.encode, receiving.accepted)} == {
        event.encode() for event in expected(records) if event != refused
    }
    (dead_letter,) = one.dead_letters()
    assert (dead_letter.detail, dead_letter.offset) == (f"status 404: opened {refused.id}", 2)
    assert (dead_letter.topic, dead_letter.enrichment, dead_letter.attempts) == (
        APP.topics.derived("too_high"),
        "too_high",
        1,
    )
    assert dead_letter.idempotency_key == refused.idempotency_key


async def test_a_webhook_that_refuses_everything_stops_no_other_and_goes_on_in_order_when_it_accepts() -> None:
    """Both workers are in one process. A wrong key costs the first few events, which a redrive delivers."""
    records, is_refused = crossings(DEVICES), True
    one, other = Delivering(records), Delivering(records)
    refusing, healthy = Receiving(lambda _: 401 if is_refused else 200), Receiving(lambda _: 200)
    async with delivering(other, healthy), delivering(one, refusing):
        await until(lambda: one.counts.get(metrics.TRIALS, "pager") > DEVICES)
        await until(lambda: other.log.confirmed == {0: len(records)})
        is_refused = False
        await until(lambda: one.log.confirmed == {0: len(records)})
    assert_delivered(healthy, records)
    failed = {dead_letter.idempotency_key for dead_letter in one.dead_letters()}
    assert len(failed) == FIRST - 1
    opened = [event for event in refusing.accepted if event.event == "opened"]
    assert len(refusing.accepted) == len(expected(records)) - len(failed)
    for event in opened:
        closed = [later for later in refusing.accepted if later.id == event.id and later.event == "closed"]
        assert all(refusing.accepted.index(event) < refusing.accepted.index(later) for later in closed)


async def test_an_event_that_always_gets_500_is_a_dead_letter_after_its_attempts_while_nothing_else_is_sent() -> None:
    opened, closed = crossing("sensor-1", 1)
    one, calls = Delivering([opened]), list[AlertEvent]()

    def refuse(event: AlertEvent) -> int:
        calls.append(event)
        return 500 if event.event == "opened" else 200

    policy = PATIENT.model_copy(
        update={"attempts": 6, "breaker": Breaker(failures=2, open_for=timedelta(seconds=0.01))}
    )
    receiving = Receiving(refuse)
    async with delivering(one, receiving, policy):
        await until(lambda: one.log.confirmed == {0: 1})
        one.log.values.append(closed.encode())
        await until(lambda: one.log.confirmed == {0: 2})
    (dead_letter,) = one.dead_letters()
    assert (dead_letter.attempts, (dead_letter.detail or "").partition(":")[0]) == (6, "status 500")
    assert [event.event for event in calls] == ["opened"] * 6 + ["closed"]


async def test_an_event_that_two_records_have_waits_at_the_first_of_them() -> None:
    """The next worker begins there, so that it delivers the event before a later one of the alert."""
    state, (opened, closed) = new_state(), crossing("sensor-1", 1)
    planner = DeliveryPlanner(APP, APP.alerts[0].name, WEBHOOK, Counts(CATALOGUE))
    for offset, value in enumerate((opened, closed, opened)):
        record = Record("alerts", 0, offset, 0, b"sensor-1", value.encode())
        planned = planner.plan(state, record, START)
        state.partition.track(offset, len(planned))
        for request in planned:
            state.add(record, request, None)
    assert state.partition.position == 0


async def test_an_event_that_two_records_have_is_delivered_once_and_rubbish_is_a_dead_letter() -> None:
    (opened, closed), other = crossing("sensor-1", 1), crossing("sensor-2", 1)[0]
    one, receiving = Delivering([opened, opened, closed, closed, other]), Receiving(lambda _: 200)
    one.log.values[1:1] = [b"{}", None]
    async with delivering(one, receiving):
        await until(lambda: one.log.confirmed == {0: 7})
    assert_delivered(receiving, [opened, closed, other])
    (dead_letter,) = Gated.dead_letters(one)
    assert (dead_letter.reason, dead_letter.offset) == ("undecodable_snapshot", 1)
