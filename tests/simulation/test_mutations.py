"""Each guard of the loop is necessary: without it, a script fails. So the simulator can fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from typing_extensions import override

from contracts.planning import admission, plan
from contracts.records import decode
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.reducers import Enriched, Sum
from services.enrichment.calls.circuit_breaker import CircuitBreaker
from services.enrichment.deferred_queue import DeferredQueue
from services.enrichment.dispatcher import Dispatcher
from services.enrichment.handler import EnrichmentHandler
from services.enrichment.in_flight import InFlight
from services.enrichment.partition_state import PartitionState
from services.runtime.broker_clock import BrokerClock
from services.runtime.topic_owners import TopicOwners
from services.runtime.worker.offsets import Offsets
from services.tools.redrive.action import reopening
from services.tools.redrive.redrive import RedriveHandler
from spark_app.run.heartbeat import Heartbeat
from spark_app.run.low_watermark import LowWatermark
from tests.simulation import query
from tests.simulation.generate import script as script_of
from tests.simulation.mutations import Mutations
from tests.simulation.script import FORGED, Compact, Fault, Forged, FormerJob, Redrive, Script, Sent, time_at
from tests.simulation.states import EPOCH
from tests.simulation.steps import loaded, sent
from tests.simulation.verdict import verdict

if TYPE_CHECKING:
    import asyncio

    import pytest

    from contracts import Application
    from contracts.planning.request import Request
    from contracts.records.record import Delta, Record
    from contracts.wire import Snapshot
    from services.enrichment.in_flight import PendingRequest


mutation = Mutations(script_of, verdict)


def forged(at: float, epoch: int, given_at: float | None = None) -> Forged:
    answer = {
        "device_id": "d0",
        "first_seen": time_at(0.0).isoformat(),
        "enrichment": "owner",
        "epoch": epoch,
        "version": 1,
        "status": "result",
        "ts": time_at(at if given_at is None else given_at).isoformat(),
        "fingerprint": FORGED,
        "result": {"owner": {"name": "nobody's"}},
    }
    return Forged(at, "feedback", b"d0", orjson.dumps(answer))


MISPLACED = (
    b'{"device_id":"d0","event_id":"e1","first_seen":"2026-01-01T00:00:00Z","ts":"2026-01-01T00:00:20Z","load":7}'
)
SIX_DEVICES = tuple(sent(10.0 + number, f"e{number}", f"d{number}") for number in range(6))


@mutation(
    Script(1, (Fault(5.0, "hang", "registry", 12.0), sent(10.0), Fault(14.0, "crash", "worker-0", 5.0))),
)
def offsets_are_committed_before_the_work_is_finished(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Offsets, "position", property(lambda offsets: offsets._next))  # noqa: SLF001


@mutation(Script(1, (Fault(5.0, "hang", "registry", 10.0), sent(10.0), sent(11.0, "e1"))), is_found_by_seeds=True)
def requests_in_flight_are_planned_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionState, "_is_suppressed", lambda *_: False)


@mutation(Script(1, (Fault(5.0, "error", "registry", 60.0), sent(10.0))), is_found_by_seeds=True)
def failures_have_no_dead_letters(patch: pytest.MonkeyPatch) -> None:
    async def dropped(*_: object) -> None:
        pass

    patch.setattr(EnrichmentHandler, "_send_to_dead_letters", dropped)


@mutation(Script(1, (Fault(5.0, "unavailable", "registry", 60.0), *SIX_DEVICES)), is_found_by_seeds=True)
def a_breaker_stays_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CircuitBreaker, "_half_open", lambda _: None)


@mutation(
    Script(1, (Fault(5.0, "unavailable", "registry", 60.0), *SIX_DEVICES), unfinished=4, in_flight=1),
)
def deferred_requests_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeferredQueue, "_ensure_resuming", lambda _: None)


@mutation(Script(1, (sent(10.0), sent(20.0))), is_found_by_seeds=True)
def copies_of_an_event_count(patch: pytest.MonkeyPatch) -> None:
    class Counting(Fold):
        @override
        def add(self, delta: Delta) -> Snapshot | None:
            self.seen.clear()
            return super().add(delta)

    patch.setattr(query, "Fold", Counting)


@mutation(Script(1, (sent(10.0), forged(100.0, 0))))
def the_last_answer_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Enriched, "merge", lambda _, __, other: other)


@mutation(Script(1, (sent(10.0), forged(100.0, EPOCH, given_at=7200.0))))
def the_latest_answer_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Enriched, "merge", lambda _, one, other: max(one, other, key=lambda answer: answer["ts"]))


@mutation(Script(1, (sent(10.0), Forged(20.0, "events", b"d1", MISPLACED))))
def events_with_the_key_of_another_device_are_accepted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decode, "_check_key", lambda *_: None)


@mutation(Script(1, (sent(10.0), forged(100.0, EPOCH + 1))))
def answers_of_a_later_epoch_are_accepted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(query, "Decoder", lambda application, _, clock, count: Decoder(application, None, clock, count))


@mutation(
    Script(1, (sent(10.0), Fault(20.0, "lag", "job", 2000.0, 0), sent(30.0, "e1")), "short", 1, batch_s=30.0),
)
def the_clock_moves_the_watermark(patch: pytest.MonkeyPatch) -> None:
    def advance(low: LowWatermark) -> None:
        low.time = low._upstream()  # noqa: SLF001

    patch.setattr(LowWatermark, "advance", advance)


@mutation(Script(1, (sent(10.0), sent(1500.0, "e1")), "short"))
def late_records_are_accepted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Decoder, "_check_start", lambda *_: None)


@mutation(Script(1, (Fault(9.0, "clock", "worker-0", 30.0, 3600.0), sent(10.0)), "short"), is_found_by_seeds=True)
def the_clock_of_a_worker_ends_windows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerClock, "now", lambda _: datetime.max.replace(tzinfo=UTC))


@mutation(Script(1, (loaded(10.0, 60), loaded(20.0, 50))), is_found_by_seeds=True)
def sums_keep_the_larger_value(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sum, "merge", lambda _, one, other: max(one, other))


@mutation(Script(1, (sent(500.0),), "short"))
def requests_end_before_the_grace(patch: pytest.MonkeyPatch) -> None:
    def is_expired(application: Application, snapshot: Snapshot, now: datetime) -> bool:
        return now - snapshot.first_seen > application.state.lifetime

    patch.setattr(plan, "is_expired", is_expired)


@mutation(Script(1, (sent(10.0),), "short"), is_found_by_seeds=True)
def no_heartbeat_is_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Heartbeat, "write", lambda *_: False)


@mutation(Script(1, (sent(10.0), Fault(100.0, "rebuild", "job", 5.0), FormerJob(2600.0))), is_found_by_seeds=True)
def the_job_of_an_older_checkpoint_is_not_refused(patch: pytest.MonkeyPatch) -> None:
    require = TopicOwners._require  # noqa: SLF001
    patch.setattr(TopicOwners, "_require", lambda owners, claims, epoch=0: max(epoch, require(owners, claims)))


@mutation(Script(1, (Fault(5.0, "error", "registry", 60.0), sent(10.0), Redrive(2800.0))))
def failures_are_reopened_too_early(patch: pytest.MonkeyPatch) -> None:
    early = partial(reopening, now=time_at(0.0))
    patch.setattr("services.tools.redrive.redrive.reopening", lambda app, found, _: early(app, found))
    patch.setattr("services.tools.redrive.action.TICK", timedelta(hours=-1))


@mutation(
    Script(1, (sent(10.0), Forged(20.0, "events", b"d0", b"{"), Fault(100.0, "rebuild", "job", 5.0), Redrive(300.0)))
)
def a_record_is_sent_again_for_each_dead_letter(patch: pytest.MonkeyPatch) -> None:
    redriven = RedriveHandler._redriven  # noqa: SLF001

    async def forgetful(handler: RedriveHandler, stored: Any) -> Any:
        handler._run.sent.clear()  # noqa: SLF001
        return await redriven(handler, stored)

    patch.setattr(RedriveHandler, "_redriven", forgetful)


UNAVAILABLE = Fault(5.0, "unavailable", "registry", 300.0)
AGAIN = tuple(sent(30.0 + number, f"f{number}", f"d{number}") for number in range(6))


@mutation(Script(1, (UNAVAILABLE, *SIX_DEVICES, *AGAIN, Compact(60.0, "snapshots")), unfinished=4, in_flight=1))
def deferred_snapshots_that_are_compacted_stay_unfinished(patch: pytest.MonkeyPatch) -> None:
    replan = EnrichmentHandler._replan  # noqa: SLF001

    def replan_found(handler: EnrichmentHandler, api: str, state: PartitionState, offset: int, record: Any) -> None:
        if record is not None:
            replan(handler, api, state, offset, record)

    patch.setattr(EnrichmentHandler, "_replan", replan_found)


@mutation(
    Script(
        1,
        (UNAVAILABLE, *SIX_DEVICES, *AGAIN, Fault(90.0, "cut", "worker-0", 60.0)),
        unfinished=4,
        deferred=1,
        in_flight=1,
    ),
)
def deferred_requests_of_a_revoked_partition_count(patch: pytest.MonkeyPatch) -> None:
    abandon = PartitionState.abandon

    def abandoned(state: PartitionState) -> int:
        state._deferred.clear()  # noqa: SLF001
        return abandon(state)

    patch.setattr(PartitionState, "abandon", abandoned)


@mutation(
    Script(
        1,
        (UNAVAILABLE, *SIX_DEVICES, Fault(50.0, "crash", "job", 5.0), Compact(70.0, "snapshots")),
        batch_s=300.0,
        unfinished=4,
        in_flight=1,
    ),
    is_found_by_seeds=True,
)
def copies_of_deferred_snapshots_are_not_planned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionState, "is_latest", lambda *_: False)


def plated(at: float, plate: str, device: str = "d0") -> Sent:
    return Sent(at, device, f"e{at}", ts=at, plate=plate, load=round(at))


CHANGING = tuple(plated(10.0 + number / 5, f"p{number % 3 + 1}") for number in range(30))


@mutation(Script(1, CHANGING, in_flight=3, slowest_s=1.5), is_found_by_seeds=True)
def an_overtaken_request_loses_offsets(patch: pytest.MonkeyPatch) -> None:
    replace = InFlight.replace

    def replace_one(in_flight: InFlight, earlier: PendingRequest, later: PendingRequest) -> None:
        earlier.offsets.clear()
        replace(in_flight, earlier, later)

    patch.setattr(InFlight, "replace", replace_one)


DISORDERED = tuple(plated(10.0 + number / 10, f"p{number % 3 + 1}", f"d{number % 2}") for number in range(12))


@mutation(Script(1, (Fault(5.0, "hang", "registry", 60.0), *DISORDERED), unfinished=4, in_flight=1))
def a_coalesced_request_waits_at_its_first_offset(patch: pytest.MonkeyPatch) -> None:
    coalesce = InFlight.coalesce

    def coalesce_at_first(in_flight: InFlight, pending: PendingRequest, record: Record, request: Request) -> list[int]:
        first = coalesce(in_flight, pending, record, request)
        pending.offsets = first
        pending.record = record._replace(offset=first[0])
        return [record.offset]

    patch.setattr(InFlight, "coalesce", coalesce_at_first)


@mutation(
    Script(
        1,
        (
            Fault(1.0, "crash", "worker-1", 70.0),
            Fault(66.0, "hang", "registry", 20.0),
            *(sent(70.0 + number / 10, device=f"d{device}") for number, device in enumerate((3, 5, 4, 2, 1, 0))),
        ),
        partitions=4,
        workers=2,
        in_flight=1,
    ),
    is_found_by_seeds=True,
)
def a_cancelled_request_starts_no_other(patch: pytest.MonkeyPatch) -> None:
    on_done = Dispatcher._on_done  # noqa: SLF001

    def without_dispatch(dispatcher: Dispatcher, size: int, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            dispatcher._free += 1  # noqa: SLF001
            dispatcher._free_bytes += size  # noqa: SLF001
        else:
            on_done(dispatcher, size, task)

    patch.setattr(Dispatcher, "_on_done", without_dispatch)


@mutation(
    Script(1, (Fault(9.0, "leaderless", "worker-0", 60.0), sent(10.0), Fault(20.0, "crash", "worker-0", 5.0))),
    is_found_by_seeds=True,
)
def answers_count_as_written_before_they_are(patch: pytest.MonkeyPatch) -> None:
    begin_write, finish = PartitionState.begin_write, PartitionState.finish

    def finish_early(state: PartitionState, pending: PendingRequest) -> int:
        superseded = begin_write(state, pending)
        finish(state, pending)
        return superseded

    patch.setattr(PartitionState, "begin_write", finish_early)
    patch.setattr(PartitionState, "finish", lambda *_: None)


@mutation(Script(1, (sent(10.0), sent(20.0, "e1", "d1")), workers=2))
def a_worker_ends_by_an_error_that_no_code_expects(patch: pytest.MonkeyPatch) -> None:
    finish = PartitionState.finish
    finished: list[PendingRequest] = []

    def finish_or_fail(state: PartitionState, pending: PendingRequest) -> None:
        finished.append(pending)
        if len(finished) == 1:
            raise KeyError(pending)
        finish(state, pending)

    patch.setattr(PartitionState, "finish", finish_or_fail)


@mutation(Script(1, tuple(loaded(130.0 + 2 * number, number) for number in range(10)), "limited"))
def a_budget_counts_no_requests(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "_spent", lambda *_: 0)


test_a_script_fails_without_a_guard = mutation.script_test()
test_fresh_seeds_find_a_missing_guard = mutation.seed_test()
