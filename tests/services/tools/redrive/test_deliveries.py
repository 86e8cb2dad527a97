"""Deliveries that failed, and are made again: with a worker, redrives and a receiver, on a real broker."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from contracts.alerts.deliveries import events
from services.runtime.command_line import ExitCode
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.enrichment.alerted import crossings
from tests.services.enrichment.cluster import condition
from tests.services.enrichment.receiver import ACCEPTED, Receiver
from tests.services.enrichment.test_webhook_service import Pagers, calling

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

DEVICES = 5
COUNT = 2 * DEVICES
GONE = 410


async def redrive(pagers: Pagers, url: str) -> str:
    """Run a redrive, and return its output."""
    with pagers.process(
        "services.tools.cli", calling(url), "redrive", "back", "--reason", "delivery_failed"
    ) as process:
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0, pagers.output()
    return pagers.output()


@pytest.mark.kafka
@pytest.mark.slow
async def test_refused_events_are_delivered_by_a_redrive_and_others_are_not_repeated(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    pagers, receiver, status = Pagers(broker.bootstrap, topics_prefix, tmp_path), Receiver(), ACCEPTED
    receiver.status = lambda: status
    before, refused, after = (crossings(DEVICES, (version,)) for version in (1, 3, 5))
    keys = [event.idempotency_key for one in refused for event in events("too_high", one)]

    async with receiver.serving():
        with pagers.worker(receiver.url) as worker:
            await asyncio.to_thread(pagers.publish, before)
            await condition(lambda: len(receiver.attempts) == COUNT, "the first events are accepted")
            status = GONE
            await asyncio.to_thread(pagers.publish, refused)
            await asyncio.to_thread(
                wait_until, lambda: pagers.dead_letter_count() == COUNT, "the events are dead letters", DEADLINE_S
            )
            output = await redrive(pagers, receiver.url)
            assert f"{COUNT} dead letters, {COUNT} refused again by their webhook\n" in output
            assert output.count("is refused again: status 410") == COUNT

            status = ACCEPTED
            slowly = ("services.tools.cli", calling(receiver.url), "redrive", "back", "--rate", "20")
            with pagers.process(*slowly) as process:
                await condition(lambda: bool(receiver.accepted() & set(keys)), "the redrive has begun")
                process.send_signal(signal.SIGINT)
                assert await asyncio.to_thread(process.wait, DEADLINE_S) == ExitCode.INTERRUPTED, pagers.output()
            assert "stateloop redrive: stopped; the next one begins with the first dead letter again" in pagers.output()
            before_kill = len(receiver.attempts)
            with pagers.process(*slowly) as process:
                await condition(lambda: len(receiver.attempts) > before_kill + 2, "the redrive has begun")
                process.kill()
                await asyncio.to_thread(process.wait, DEADLINE_S)
            await asyncio.to_thread(pagers.publish, after)
            await condition(lambda: len(receiver.accepted() - set(keys)) == 2 * COUNT, "the worker goes on")

            done = len(receiver.attempts)
            assert f"{COUNT} dead letters, {COUNT} delivered again\n" in await redrive(pagers, receiver.url)
            delivered = [one.key for one in receiver.attempts[done:] if one.is_accepted]
            assert sorted(delivered) == sorted(keys)
            assert f"{COUNT} dead letters, {COUNT} delivered again\n" in await redrive(pagers, receiver.url)
            assert sorted(one.key for one in receiver.attempts[done + COUNT :]) == sorted(keys), (
                "the receiver drops them"
            )
            await asyncio.to_thread(pagers.await_commits, 3 * COUNT)
            worker.terminate()
            assert await asyncio.to_thread(worker.wait, DEADLINE_S) == 0

    assert pagers.dead_letter_count() == COUNT, "a redrive writes none"
    order = {(one.event.id, one.event.event): place for place, one in enumerate(receiver.attempts[done : done + COUNT])}
    assert all(order[alert, "opened"] < order[alert, "closed"] for alert, _ in order)
    times = Counter(attempt.key for attempt in receiver.attempts)
    assert {times[one] for one in times.keys() - set(keys)} == {1}
    expected = {
        event.idempotency_key: event for one in (*before, *refused, *after) for event in events("too_high", one)
    }
    assert {attempt.key: attempt.event for attempt in receiver.attempts} == expected
    own = {(attempt.key, attempt.content, *sorted(attempt.headers.keys())) for attempt in receiver.attempts}
    assert len(own) == len(expected), "each repetition has the same headers and the same content"
    assert all(attempt.headers["webhook-id"] == attempt.key for attempt in receiver.attempts)
