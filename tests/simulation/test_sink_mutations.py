"""Each guard of a sink is necessary: without it, a script fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contracts.records.state_record import EPOCH, MICROSECOND
from contracts.sinks import Step
from contracts.testing.memory_store import MemoryStore
from services.sink import plan
from services.sink.dead_letters import DeadLetters
from services.sink.handler import SinkHandler
from services.sink.partition import SinkPartition
from services.sink.plan import Planner
from services.sink.takeover import KnownOffsets
from tests.simulation.generate import script as script_of
from tests.simulation.mutations import Mutations
from tests.simulation.script import Fault, Forged, Script, Tombstone
from tests.simulation.steps import sent
from tests.simulation.verdict import verdict

if TYPE_CHECKING:
    import pytest

    from contracts.records.record import Record
    from contracts.sinks import Deletion, Row

mutation = Mutations(script_of, verdict)


AN_HOUR_AHEAD = Fault(90.0, "clock", "sink-0", 900.0, 3600.0)
LOSS = Fault(100.0, "loss", "store")


@mutation(Script(1, (sent(10.0), AN_HOUR_AHEAD, sent(95.0, "e1", device="d1")), "short", sinks=1))
def the_clock_of_a_sink_ends_windows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SinkHandler, "_now_us", lambda sink: (sink._now() - EPOCH) // MICROSECOND)  # noqa: SLF001


@mutation(Script(1, (sent(10.0), LOSS), sinks=1), is_found_by_seeds=True)
def a_store_that_has_lost_everything_is_not_filled_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SinkHandler, "_read_again", lambda *_: None)


@mutation(Script(1, (sent(5.0), Fault(9.0, "rollback", "store", 20.0), sent(10.0, "e1")), sinks=1))
def an_older_store_is_not_filled_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SinkPartition, "required", property(lambda state: min(state.stored or 0, 1)))


@mutation(Script(1, (sent(5.0), sent(6.0, "e1", first_seen=5.5), Tombstone(50.0, "d0", 5.5), LOSS), sinks=1))
def a_tombstone_precedes_the_rows_of_its_batch(patch: pytest.MonkeyPatch) -> None:
    def in_one_step(steps: Any) -> tuple[Step, ...]:
        return (Step(tuple(steps._deletions), tuple(steps._rows.values())),)  # noqa: SLF001

    patch.setattr(plan._Steps, "_close", lambda *_: None)  # noqa: SLF001
    patch.setattr(plan._Steps, "finish", in_one_step)  # noqa: SLF001


@mutation(
    Script(1, (sent(5.0), sent(6.0, "e1", first_seen=5.5), Tombstone(50.0, "d0")), sinks=1), is_found_by_seeds=True
)
def a_tombstone_removes_all_windows_of_its_key(patch: pytest.MonkeyPatch) -> None:
    deletion = Planner._deletion  # noqa: SLF001

    def of_any_window(planner: Planner, record: Record) -> Deletion | None:
        found = deletion(planner, record)
        return found and found._replace(window_start=None)

    patch.setattr(Planner, "_deletion", of_any_window)


@mutation(Script(1, (sent(5.0), Forged(6.0, "snapshots", b"other", b"{")), sinks=1), is_found_by_seeds=True)
def refused_records_have_no_dead_letter(patch: pytest.MonkeyPatch) -> None:
    async def dropped(*_: object) -> None:
        pass

    patch.setattr(DeadLetters, "send", dropped)


@mutation(Script(1, (sent(5.0), sent(6.0, "e1", first_seen=5.5), sent(7.0, "e2")), sinks=1), is_found_by_seeds=True)
def an_older_window_replaces_a_newer_one(patch: pytest.MonkeyPatch) -> None:
    def put(store: MemoryStore, row: Row) -> bool:
        store.state.rows[row.row_key(store._windows)] = row  # noqa: SLF001
        return True

    patch.setattr(MemoryStore, "_put", put)


FROZEN_IN_A_WRITE = Fault(9.0, "suspended", "sink-1", 31.8, 1.0)
FOUR = [sent(10.0 + 0.1 * number, f"e{number}", first_seen=5.0) for number in range(4)]


@mutation(Script(1, (FROZEN_IN_A_WRITE, *FOUR), "short", partitions=1, sinks=2, refused=3))
def a_sink_that_wakes_moves_the_position_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SinkPartition, "has", lambda *_: False)


MANY = [sent(10.0 + 0.05 * number, f"e{number}", first_seen=5.0) for number in range(30)]
KILLED_BEFORE_A_COMMIT = Fault(10.9, "crash", "sink-0", 1.0)


@mutation(Script(1, (*MANY, KILLED_BEFORE_A_COMMIT), "short", partitions=1, sinks=1, sink_batch=1))
def a_takeover_from_an_older_offset_moves_the_position_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KnownOffsets, "is_of", lambda *_: False)


test_a_script_fails_without_a_guard = mutation.script_test()
test_fresh_seeds_find_a_missing_guard = mutation.seed_test()
