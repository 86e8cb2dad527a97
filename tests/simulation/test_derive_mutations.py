"""Each guard of derive workers is necessary: without it, a script fails."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from services.alerts import restore
from services.alerts.evaluator import AlertEvaluator
from services.alerts.partition import AlertPartition
from services.alerts.reported_rows import ReportedRows
from services.alerts.tables import Tables
from services.derive.handler import DeriveHandler
from services.derive.partition import DerivePartition
from services.runtime.broker_clock import BrokerClock
from services.runtime.kafka.membership import GroupMembership
from services.tools.redrive.action import RedriveAction
from services.tools.redrive.redrive import RedriveHandler
from spark_app.run.published_progress import PublishedProgress
from tests.simulation.generate import script as script_of
from tests.simulation.mutations import Mutations
from tests.simulation.script import Fault, Redrive, Row, Script, Sent
from tests.simulation.steps import derived, loaded, row
from tests.simulation.verdict import verdict

if TYPE_CHECKING:
    import pytest

    from contracts.wire.alert_record import AlertRecord
    from services.runtime.job_progress import Published
    from services.runtime.kafka.values import Output

mutation = Mutations(script_of, verdict)


@mutation(derived(row(0.5, hold=60), loaded(10.0, 60)), is_found_by_seeds=True)
def an_alert_that_is_due_waits_for_a_snapshot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AlertEvaluator, "_due", lambda _: iter(()))


@mutation(
    derived(Fault(1.0, "clock", "job", 900.0, 3600.0), row(2.0, hold=600), loaded(10.0, 60), loaded(300.0, 50)),
)
def the_clock_of_the_job_opens_alerts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerClock, "now", lambda _: datetime.max.replace(tzinfo=UTC))


@mutation(derived(row(0.5), loaded(10.0, 60), application="short"), is_found_by_seeds=True)
def alerts_of_expired_windows_stay_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AlertEvaluator, "_expired", lambda _: iter(()))


@mutation(derived(loaded(10.0, 60), Fault(20.0, "crash", "derive-0", 30.0), row(30.0)))
def a_worker_that_begins_evaluates_no_rules(patch: pytest.MonkeyPatch) -> None:
    sweep = AlertEvaluator._sweep  # noqa: SLF001

    def without_first(evaluator: AlertEvaluator, declared: Any, names: Any) -> Any:
        found = sweep(evaluator, declared, names)
        return found._replace(slices=iter(())) if names is None else found

    patch.setattr(AlertEvaluator, "_sweep", without_first)


@mutation(
    derived(
        row(0.5, hold=60),
        loaded(10.0, 60),
        Fault(15.0, "crash", "job", 20.0),
        loaded(20.0, 50),
        loaded(25.0, 50),
        backlog=2,
    ),
)
def missing_snapshots_end_no_pending_alert(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AlertEvaluator, "_is_next", lambda *_: True)


@mutation(
    derived(
        row(0.5, hold=60),
        loaded(10.0, 60),
        Fault(20.0, "crash", "derive-0", 200.0),
        *(loaded(30.0 + number, 1, "d1") for number in range(5)),
        loaded(65.0, 50),
    ),
)
def the_progress_counts_before_its_snapshots_are_read(patch: pytest.MonkeyPatch) -> None:
    def reach(partition: AlertPartition, published: Published | None) -> None:
        partition.reached, partition.is_current = published, True
        partition.until = published and published.time

    patch.setattr(AlertPartition, "reach", reach)


@mutation(
    derived(row(0.5), Fault(80.0, "crash", "derive-0", 30.0), loaded(90.0, 60), loaded(95.0, 50)),
)
def snapshots_count_as_evaluated_before_they_are(patch: pytest.MonkeyPatch) -> None:
    stored = restore.stored
    patch.setattr(restore, "stored", lambda reader, places, is_ended, *_: stored(reader, places, is_ended))


@mutation(
    derived(row(0.5), Fault(9.9, "unacknowledged", "derive-0", 0.0, 2), loaded(10.0, 60), row(12.0, high=40)),
)
def alerts_are_not_read_again_after_an_unknown_write(patch: pytest.MonkeyPatch) -> None:
    async def is_restored(*_: object) -> bool:
        return True

    patch.setattr(DeriveHandler, "_is_restored", is_restored)


@mutation(
    derived(row(0.5), loaded(10.0, 60), loaded(10.03, 50), Fault(10.138, "crash", "derive-0", 5.0)),
)
def alerts_that_closed_before_the_commit_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    def restored(partition: AlertPartition, name: str, record: AlertRecord) -> None:
        partition._put(name, record, matters=bool(record.active))  # noqa: SLF001

    patch.setattr(AlertPartition, "restore", restored)


@mutation(
    derived(row(0.5, high=-1), loaded(10.0, 60), Fault(30.0, "crash", "derive-0", 5.0)),
)
def a_rule_that_raises_is_reported_by_each_worker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReportedRows, "unreported", lambda _, outputs, __: outputs)


@mutation(derived(loaded(10.0, 60), loaded(20.0, 50), Fault(30.0, "crash", "job", 5.0)))
def repeated_snapshots_count_as_present(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AlertEvaluator, "is_present", lambda *_: True)


@mutation(derived(row(0.5), Fault(9.0, "leaderless", "derive-0", 8.0), loaded(10.0, 60)))
def alerts_that_were_not_written_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DerivePartition, "discard", lambda _: None)


@mutation(derived(loaded(10.0, 60), Fault(19.0, "leaderless", "derive-0", 20.0), row(20.0, high=-1)))
def a_rule_that_raises_counts_as_reported_before_it_is(patch: pytest.MonkeyPatch) -> None:
    discard = AlertEvaluator.discard

    def forgetful(evaluator: AlertEvaluator) -> None:
        evaluator._reporting.clear()  # noqa: SLF001
        discard(evaluator)

    patch.setattr(AlertEvaluator, "discard", forgetful)


@mutation(derived(Fault(19.0, "leaderless", "derive-0", 20.0), Row(20.0, "r0", "[]")))
def a_rejected_row_counts_as_reported_before_it_is(patch: pytest.MonkeyPatch) -> None:
    dead_letters = Tables.dead_letters

    def reported(tables: Tables, partition: int, partitions: int) -> list[Output]:
        found = dead_letters(tables, partition, partitions)
        tables.reported(found)
        return found

    patch.setattr(Tables, "dead_letters", reported)


@mutation(derived(row(0.5), Fault(9.0, "refused", "pager", 60.0, 1.0), loaded(10.0, 60), Redrive(500.0)))
def a_redrive_counts_a_refused_event_as_delivered(patch: pytest.MonkeyPatch) -> None:
    async def delivered(*_: object) -> RedriveAction:
        return RedriveAction.DELIVERED_AGAIN

    patch.setattr(RedriveHandler, "_delivered", delivered)


FROZEN = Script(
    2,
    (
        Row(0.5, "r0", '{"high": 20, "low": 20, "hold": 0}'),
        *(Sent(10.0 + number / 100, "d0", f"e{number}", ts=10.0 + number / 100, load=17) for number in range(12)),
        Fault(10.07, "freeze", "derive-0", 20.0),
        Fault(10.07, "freeze", "derive-1", 2.0),
        *(Sent(at, "d0", f"e{at}", ts=at, load=17) for at in (24.0, 27.0, 29.0)),
    ),
    partitions=1,
    derivers=2,
)
"""A worker is frozen with records that it has read, until another has their partition."""


@mutation(derived(row(0.5), loaded(10.0, 60), application="closed"), is_found_by_seeds=True)
def closed_windows_are_over_before_workers_have_them(patch: pytest.MonkeyPatch) -> None:
    after = PublishedProgress.after

    def by_low_watermark(published: PublishedProgress, batch: Any) -> None:
        published._by_watermark = False  # noqa: SLF001
        after(published, batch)

    patch.setattr(PublishedProgress, "after", by_low_watermark)


@mutation(FROZEN)
def workers_write_without_a_proof_of_membership(patch: pytest.MonkeyPatch) -> None:
    async def is_owned(*_: object, **__: object) -> bool:
        return True

    patch.setattr(DeriveHandler, "_is_owned", is_owned)


@mutation(FROZEN)
def a_poll_after_a_pause_proves_membership(patch: pytest.MonkeyPatch) -> None:
    def poll(membership: GroupMembership) -> None:
        membership._polled_at = membership.proven_at = membership._clock()  # noqa: SLF001

    patch.setattr(GroupMembership, "poll", poll)


test_a_script_fails_without_a_guard = mutation.script_test()
test_fresh_seeds_find_a_missing_guard = mutation.seed_test()
