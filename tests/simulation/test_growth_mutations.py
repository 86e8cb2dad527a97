"""Each step of a growth of topics is necessary: without it, a script fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contracts.wire import OffsetVersioned
from services.alerts.reported_rows import ReportedRows
from services.derive.topics import partition_counts
from services.runtime.job_progress import JobProgress
from services.runtime.worker.assignment import Assignment
from services.tools.topics import growth
from services.tools.topics.followers import ConsumerGroup, Followers
from services.tools.topics.rewrite import RecordMover
from spark_app.checkpoint.lease import CheckpointLease
from tests.simulation import derive
from tests.simulation.generate import script as script_of
from tests.simulation.mutations import Mutations
from tests.simulation.script import Fault, Row, Script
from tests.simulation.steps import derived, loaded, row, sent
from tests.simulation.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.runtime.kafka.values import BoundedRange, Partition
    from tests.simulation.script import Step

mutation = Mutations(script_of, verdict)

DEVICES = [f"d{number}" for number in range(6)]
GROWTH = Fault(100.0, "growth", "job", 60.0, 5)
NEXT_GROWTH = Fault(400.0, "growth", "job", 60.0, 7)
LOADED: tuple[Step, ...] = (
    row(0.5),
    *(loaded(10.0 + number, 60, device) for number, device in enumerate(DEVICES)),
    GROWTH,
    *(loaded(600.0 + number, 50, device) for number, device in enumerate(DEVICES)),
)
FORMER = 2
GROWN = Script(1, LOADED, partitions=FORMER, sinks=1, derivers=1)
OVER = Script(
    1, (row(0.5), loaded(261.0, 60), Fault(1411.0, "growth", "job", 60.0, 5)), "visits", 1, derivers=1, batch_s=300.0
)
"""The window of an event is over by the progress, and the job that follows publishes it again."""

FROZEN = Script(
    1,
    (
        *(sent(10.0 + number, device=device) for number, device in enumerate(DEVICES)),
        GROWTH,
        Fault(101.0, "freeze", "growth", 100.0),
        Fault(102.0, "start", "job"),
        *(sent(140.0 + number, "e2", device=device) for number, device in enumerate(DEVICES)),
    ),
)
"""An operator starts the job while the command is frozen."""


@mutation(GROWN, is_found_by_seeds=True)
def partitions_that_were_added_are_not_read(patch: pytest.MonkeyPatch) -> None:
    on_assigned = Assignment.on_assigned

    def without(assignment: Assignment, partitions: list[int]) -> None:
        on_assigned(assignment, [number for number in partitions if number < FORMER])

    patch.setattr(Assignment, "on_assigned", without)


@mutation(GROWN, is_found_by_seeds=True)
def records_stay_where_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(growth, "rewrite", lambda *_: None)


@mutation(GROWN, is_found_by_seeds=True)
def copies_are_in_the_former_partition(patch: pytest.MonkeyPatch) -> None:
    new_partition = RecordMover._new_partition  # noqa: SLF001

    def former(mover: RecordMover, key: str) -> int:
        mover._partitions = FORMER  # noqa: SLF001
        return new_partition(mover, key)

    patch.setattr(RecordMover, "_new_partition", former)


@mutation(GROWN, is_found_by_seeds=True)
def a_derive_worker_writes_to_the_former_partitions(patch: pytest.MonkeyPatch) -> None:
    async def former(*arguments: Any) -> Mapping[str, int]:
        found = await partition_counts(*arguments)
        return {name: min(count, FORMER) for name, count in found.items()}

    patch.setattr(derive, "partition_counts", former)


@mutation(derived(row(0.5), loaded(10.0, 60), GROWTH, NEXT_GROWTH))
def copies_have_the_versions_of_their_offsets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetVersioned, "moved", lambda record, _: record)


@mutation(
    derived(
        row(0.5),
        loaded(5.0, 10),
        Fault(90.0, "freeze", "derive-0", 100.0),
        loaded(91.0, 60),
        GROWTH,
    ),
)
def the_workers_need_not_have_read_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Followers, "await_end", lambda *_: None)


@mutation(Script(1, (sent(10.0), GROWTH, NEXT_GROWTH), partitions=1), is_found_by_seeds=True)
def a_group_that_has_read_nothing_is_moved_to_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_try_to_begin", lambda *_: False)


@mutation(FROZEN)
def a_growth_that_was_frozen_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CheckpointLease, "renew", lambda _: None)


@mutation(OVER)
def the_progress_stays_with_the_former_partitions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JobProgress, "spread", lambda *_: None)


@mutation(derived(Row(0.5, "r0", "[]"), sent(10.0), GROWTH))
def reported_rows_are_looked_up_in_the_partition_of_their_key(patch: pytest.MonkeyPatch) -> None:
    bounds_since = ReportedRows._bounds_since  # noqa: SLF001

    def of_last(rows: ReportedRows, time: Any) -> Mapping[Partition, BoundedRange]:
        found = bounds_since(rows, time)
        return {place: one for place, one in found.items() if place.number == len(found) - 1}

    patch.setattr(ReportedRows, "_bounds_since", of_last)


def test_the_operator_starts_no_job_after_a_growth_when_the_next_one_has_begun() -> None:
    steps = (
        Fault(1809.8489367501368, "growth", "job", 60.0, 6),
        Fault(1809.8489367501368, "suspended", "growth", 103.34278019191116, 43.0),
        Fault(1935.155314189888, "growth", "job", 60.0, 7),
    )
    assert verdict(Script(440700496, steps, application="limited", partitions=1)) == []


test_a_script_fails_without_a_step = pytest.mark.full(mutation.script_test())
test_fresh_seeds_find_a_missing_step = mutation.seed_test()
