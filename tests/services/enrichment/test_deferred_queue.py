"""Requests of an API that is down for long are deferred, and their snapshots read again when it is back."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from contracts.metrics import worker as metrics
from contracts.planning.fingerprint import fingerprint
from tests.services.enrichment.fleet import answer, owner, quote, snapshot
from tests.services.enrichment.in_memory import Gated, Log, cars, running, until
from tests.services.enrichment.test_flow import APART

if TYPE_CHECKING:
    from contracts.model.enrichment import M

MANY = 3000
FEW = 100
LATER = 1000
MOST_BYTES = 800
"""The memory of a deferred request in small dictionaries; a queued one takes far more."""


class SlowQuotes(Gated):
    """Answers no quote before the event is set."""

    def __init__(self) -> None:
        super().__init__()
        self.quotes = asyncio.Event()

    @override
    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        if path.startswith("/quotes"):
            await self.quotes.wait()
        return await super().get(path, model, **values)


def away(log: Log) -> Gated:
    """Answer everything but quotes."""
    log.batch = 500
    gated = Gated().let()
    gated.down = {"prices"}
    return gated


def back(gated: Gated) -> None:
    gated.down.clear()
    gated.back.set()


async def test_a_long_outage_of_an_api_delays_only_its_own_requests() -> None:
    log = Log(cars(MANY))
    gated = away(log)
    async with running(log, gated, APART, unfinished=FEW):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner", "result") == MANY)
        counts = gated.counts
        await until(lambda: counts.get(metrics.DEFERRED) > MANY - FEW and counts.get(metrics.UNFINISHED) < FEW)
        assert set(log.committed) <= {0}, "nothing is committed beyond unfinished offsets"
        assert gated.calls == MANY
        back(gated)
        await until(lambda: MANY in log.committed)
        assert gated.counts.get(metrics.DEFERRED) == 0
    assert gated.calls == 2 * MANY, "each once"
    assert {(one.device_id, one.enrichment) for one in gated.feedback()} == {
        (f"d{number}", name) for number in range(MANY) for name in ("owner", "quote")
    }


@pytest.mark.slow
async def test_a_deferred_request_takes_the_memory_of_its_offset_only() -> None:
    log = Log(cars(2 * MANY))
    gated = away(log)
    async with running(log, gated, APART, unfinished=FEW, recent_entries=1, stop_within=0):
        await until(lambda: gated.counts.get(metrics.DEFERRED) > MANY)
        gc.collect()
        tracemalloc.start()
        before, written = gated.counts.get(metrics.DEFERRED), len(gated.written)
        await until(lambda: gated.counts.get(metrics.DEFERRED) > 2 * MANY - FEW)
        gated.written[written:] = []
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        deferred = gated.counts.get(metrics.DEFERRED) - before
    assert grown < MOST_BYTES * deferred


async def test_only_the_latest_inputs_of_a_changed_device_are_requested() -> None:
    changes = [snapshot(version, f"P{version}", f"d{n}").encode() for version in (1, 2, 3) for n in range(FEW)]
    log = Log([*changes])
    gated = away(log)
    gated.down = {"prices", "registry"}
    async with running(log, gated, APART, unfinished=8):
        await until(lambda: gated.counts.get(metrics.SNAPSHOTS) == len(changes))
        back(gated)
        await until(lambda: len(changes) in log.committed)
    assert gated.calls == 2 * FEW
    assert {one.version for one in gated.feedback()} == {3}


async def test_a_queued_request_is_coalesced_and_not_deferred_too() -> None:
    log = Log([snapshot(1, "P1", "waits").encode()])
    gated = away(log)
    gated.down = {"prices", "registry"}
    async with running(log, gated, APART, unfinished=8):
        await until(lambda: gated.counts.get(metrics.QUEUED) == 2)
        log.values.extend([*cars(FEW), snapshot(2, "P2", "waits").encode()])
        await until(lambda: gated.counts.get(metrics.SNAPSHOTS) == len(log.values))
        assert gated.counts.get(metrics.COALESCED) == 2
        back(gated)
        await until(lambda: len(log.values) in log.committed)
    assert gated.calls == 2 * (FEW + 1)
    assert {one.version for one in gated.feedback() if one.device_id == "waits"} == {2}


async def test_a_record_that_the_topic_has_lost_is_finished() -> None:
    log = Log(cars(FEW))
    gated = away(log)
    log.gone = set(range(50, FEW))
    async with running(log, gated, APART, unfinished=8):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner", "result") == FEW)
        back(gated)
        await until(lambda: FEW in log.committed)
    assert len([one for one in gated.feedback() if one.enrichment == "quote"]) == 50


async def test_another_record_at_the_place_of_a_deferred_one_ends_no_worker() -> None:
    log = Log(cars(FEW))
    gated = away(log)
    async with running(log, gated, APART, unfinished=8):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner", "result") == FEW)
        log.values[50:] = [b"of another topic"] * (FEW - 50)
        back(gated)
        await until(lambda: FEW in log.committed)
    assert len([one for one in gated.feedback() if one.enrichment == "quote"]) == 50


async def test_a_lost_partition_abandons_its_deferred_requests() -> None:
    log = Log(cars(FEW))
    gated = away(log)
    async with running(log, gated, APART, unfinished=8, max_deferred=FEW):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner", "result") == FEW)
        await until(lambda: gated.counts.get(metrics.DEFERRED) > FEW - 8)
        log.listener.on_lost([0])
        await until(lambda: gated.counts.get(metrics.UNFINISHED) == gated.counts.get(metrics.DEFERRED) == 0)
        assert gated.counts.get(metrics.ABANDONED) == FEW
        log.listener.on_assigned([0])
        log.read = 0
        back(gated)
        await until(lambda: FEW in log.committed)
    assert len([one for one in gated.feedback() if one.enrichment == "quote"]) == FEW


async def test_a_partition_that_is_lost_while_it_is_reread_is_left() -> None:
    log = Log(cars(FEW))
    gated = away(log)
    log.open_again.clear()
    async with running(log, gated, APART, unfinished=8, stop_within=0):
        await until(lambda: gated.counts.get(metrics.DEFERRED) > FEW - 8)
        back(gated)
        await until(lambda: log.again > 0)
        log.listener.on_lost([0])
        log.open_again.set()
        log.listener.on_assigned([0])
        log.read = 0
        await until(lambda: FEW in log.committed)


async def test_skipped_requests_are_not_deferred() -> None:
    failing = answer(1, fingerprint(owner, {"plate": "P"}), {}).model_copy(update={"status": "absence", "result": None})
    quoted = answer(1, fingerprint(quote, {"plate": "P"}), {"price": 1.0})
    skipped = snapshot(2, "P", "d-skipped", owner=failing, quote=quoted)
    log = Log([*cars(FEW), skipped.encode()])
    gated = away(log)
    gated.down = {"registry", "prices"}
    async with running(log, gated, APART, unfinished=8, stop_within=0):
        await until(lambda: [(one.device_id, one.status) for one in gated.feedback()] == [("d-skipped", "skipped")])


async def test_new_requests_are_deferred_behind_the_earlier_ones_when_the_api_is_back() -> None:
    log, gated = Log(cars(MANY)), SlowQuotes()
    log.batch = 500
    gated.let()
    gated.down = {"prices"}
    async with running(log, gated, APART, unfinished=MANY, in_flight=10, stop_within=0):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner") == MANY)
        await until(lambda: gated.counts.get(metrics.QUEUED, "prices") + gated.counts.get(metrics.DEFERRED) == MANY)
        await until(lambda: gated.counts.get(metrics.QUEUED, "prices") == gated.counts.get(metrics.UNFINISHED))
        deferred = gated.counts.get(metrics.DEFERRED)
        assert deferred > MANY // 2
        back(gated)
        log.values.extend(cars(10, "-later"))
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner") == MANY + 10)
        await until(lambda: gated.counts.get(metrics.DEFERRED) == deferred - log.again + 10)


async def test_requests_of_a_slow_but_available_api_stay_queued() -> None:
    log, gated = Log(cars(MANY)), SlowQuotes()
    gated.let()
    async with running(log, gated, APART, unfinished=FEW, in_flight=10, stop_within=0):
        await until(lambda: log.pauses > 1)
        assert gated.counts.get(metrics.DEFERRED) == 0


async def test_a_worker_that_stops_leaves_deferred_requests_to_the_next() -> None:
    log = Log(cars(FEW))
    gated = away(log)
    async with running(log, gated, APART, unfinished=8, stop_within=0):
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner", "result") == FEW)
    assert set(log.committed) <= {0}
    assert log.again == 0


async def test_reading_pauses_at_the_limit_of_deferred_requests_and_resumes_at_half_of_it() -> None:
    log = Log(cars(MANY))
    gated = away(log)
    async with running(log, gated, APART, unfinished=FEW, max_deferred=MANY // 3):
        await until(lambda: log.pauses > 1)
        assert log.read <= MANY // 3 + FEW + 3 * log.batch
        back(gated)
        await until(lambda: MANY in log.committed)
    assert gated.calls == 2 * MANY


async def test_requests_queued_before_an_outage_are_deferred_as_well() -> None:
    newer = [snapshot(2, f"P{number}", f"d{number}").encode() for number in range(FEW, 2 * FEW)]
    log, gated = Log([*cars(2 * FEW), *newer, *cars(LATER, "-later")]), SlowQuotes()
    gated.let()
    async with running(log, gated, APART, unfinished=3 * FEW, in_flight=10):
        await until(lambda: log.pauses > 1)
        assert gated.counts.get(metrics.ANSWERS, "owner") < LATER
        gated.down = {"prices"}
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner") >= 2 * FEW + LATER)
        back(gated)
        gated.quotes.set()
        await until(lambda: len(log.values) in log.committed)
    quotes = [one.device_id for one in gated.feedback() if one.enrichment == "quote"]
    assert len(quotes) == len(set(quotes)) == 2 * FEW + LATER


@pytest.mark.parametrize("large", ["plate", "note"])
async def test_large_snapshots_of_an_outage_do_not_stop_other_apis(large: str) -> None:
    """Either the inputs of the requests are large, or the rest of the snapshot."""
    text = "x" * 10_000
    seen = [snapshot(1, f"P{number}", f"d{number}") for number in range(LATER)]
    values = [one.model_copy(update={"state": one.state | {large: one.state["plate"] + text}}) for one in seen]
    log, gated = Log([one.encode() for one in values]), SlowQuotes()
    gated.let()
    async with running(log, gated, APART, unfinished_bytes=FEW * len(text), in_flight=2 * FEW) as worker:
        await until(lambda: log.pauses > 1)
        assert gated.counts.get(metrics.ANSWERS, "owner") < LATER
        gated.down = {"prices"}
        await until(lambda: gated.counts.get(metrics.ANSWERS, "owner") == LATER)
        worker.measure()
        assert gated.counts.get(metrics.PAUSED) == 0
        back(gated)
        gated.quotes.set()
        await until(lambda: LATER in log.committed)


async def test_large_snapshots_are_read_on_while_all_apis_are_down() -> None:
    text = "x" * 10_000
    log, gated = Log([snapshot(1, text + str(number), f"d{number}").encode() for number in range(LATER)]), Gated()
    gated.acks.set()
    async with running(log, gated, APART, unfinished_bytes=20 * len(text), in_flight=FEW):
        await until(lambda: log.pauses > 1)
        gated.down = {"prices", "registry"}
        await until(lambda: log.read == LATER)
        gated.let()
        back(gated)
        await until(lambda: LATER in log.committed)


async def test_older_requests_that_are_deferred_late_are_resumed_first() -> None:
    log, gated = Log(cars(2 * FEW)), SlowQuotes()
    gated.let()
    async with running(log, gated, APART, unfinished=4 * FEW, in_flight=10, max_deferred=FEW):
        await until(lambda: gated.counts.get(metrics.QUEUED, "prices") == 2 * FEW - 10)
        gated.down = {"prices"}
        log.values.extend(cars(2 * FEW, "-later"))
        await until(lambda: log.pauses > 1)
        await until(lambda: gated.counts.get(metrics.QUEUED, "prices") < 10)
        back(gated)
        gated.quotes.set()
        await until(lambda: len(log.values) in log.committed)


@pytest.mark.parametrize("in_flight", [1, 10])
async def test_deferred_requests_resume_at_the_pace_of_the_calls(in_flight: int) -> None:
    log = Log(cars(MANY))
    gated = away(log)
    async with running(log, gated, APART, unfinished=FEW, in_flight=in_flight, stop_within=0):
        await until(lambda: gated.counts.get(metrics.DEFERRED) > MANY - FEW)
        gated.answers.clear()
        again = log.again
        back(gated)
        await until(lambda: gated.under_way == in_flight)
        await until(lambda: log.again > again)
        fetches = log.fetches
        await until(lambda: log.fetches > fetches + 2)
        assert log.again <= 600


@pytest.mark.parametrize("version", [1, 2])
async def test_a_deferred_request_is_resumed_from_the_copy_that_compaction_leaves(version: int) -> None:
    """A second copy arrived meanwhile: a later version, or the same one, which the job published again."""
    log = Log([snapshot(one, "P", "d").encode() for one in (1, version)])
    gated = away(log)
    async with running(log, gated, APART, unfinished=40, in_flight=1, max_deferred=20):
        await until(lambda: gated.counts.get(metrics.SNAPSHOTS) == 2)
        log.values.extend(cars(60, "-further"))
        await until(lambda: log.pauses > 1 and gated.counts.get(metrics.QUEUED, "prices") == 0)
        log.gone = {0}
        back(gated)
        await until(lambda: len(log.values) in log.committed)
    quotes = [one.version for one in gated.feedback() if (one.device_id, one.enrichment) == ("d", "quote")]
    assert quotes == [version]


async def test_a_copy_of_an_earlier_version_is_not_coalesced() -> None:
    log = Log([snapshot(version, plate, "d").encode() for version, plate in ((1, "P"), (2, "Q"), (1, "P"))])
    gated = away(log)
    async with running(log, gated, APART):
        await until(lambda: gated.counts.get(metrics.OUTDATED) == 1)
        back(gated)
        await until(lambda: len(log.values) in log.committed)
    assert [one.version for one in gated.feedback() if one.enrichment == "quote"] == [2]


@pytest.mark.parametrize("gone", [set(), {FEW}])
async def test_a_deferred_snapshot_that_is_published_again_is_requested_once(gone: set[int]) -> None:
    log = Log(cars(FEW))
    gated = away(log)
    async with running(log, gated, APART, unfinished=8, in_flight=1):
        await until(lambda: gated.counts.get(metrics.DEFERRED) > 0)
        log.values.extend(snapshot(1, "P", "d").encode() for _ in range(2))
        await until(lambda: gated.counts.get(metrics.SNAPSHOTS) == FEW + 2)
        log.gone = gone
        back(gated)
        await until(lambda: len(log.values) in log.committed)
    assert [one.device_id for one in gated.feedback() if one.enrichment == "quote"].count("d") == 1
