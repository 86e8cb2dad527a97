"""Each step of a switch of generations is necessary: without it, a script fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_app.checkpoint import unpublished_windows
from spark_app.checkpoint.generations import activate
from spark_app.checkpoint.unpublished_windows import UnpublishedWindows, carry_closed, store_windows, stored_windows
from tests.simulation import states
from tests.simulation.generate import script as script_of
from tests.simulation.mutations import Mutations
from tests.simulation.script import Fault, FormerJob, Script
from tests.simulation.steps import sent
from tests.simulation.verdict import verdict

if TYPE_CHECKING:
    import pytest

    from spark_app.checkpoint.folder import CheckpointFolder
    from spark_app.checkpoint.generations import Activation

mutation = Mutations(script_of, verdict)

REBUILD, ROLLBACK = Fault(700.0, "rebuild", "job", 5.0), Fault(2100.0, "rollback", "job", 5.0)
"""The newer generation publishes windows in between, which the former one has open."""
CLOSED = sent(650.0)
ROLLED_BACK = Script(1, (CLOSED, REBUILD, ROLLBACK), "closed", partitions=1)
INCOMPLETE = Script(1, (CLOSED, Fault(700.0, "incomplete", "job", 5.0), sent(720.0), ROLLBACK), "closed", partitions=1)
"""The newer generation closes windows, and lacks events of others, which the former one has open."""
REBUILT_SOON = Script(1, (CLOSED, REBUILD, ROLLBACK, Fault(2101.0, "rebuild", "job", 5.0)), "closed", partitions=1)
"""A rebuild follows before the job of the former generation has published anything."""
AT_ONCE = Script(
    1,
    (sent(10.0), Fault(100.0, "rebuild", "job", 5.0), Fault(100.0, "rollback", "job", 5.0), FormerJob(2600.0)),
    partitions=1,
)


@mutation(ROLLED_BACK, is_found_by_seeds=True)
def a_rollback_does_not_leave_closed_windows_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unpublished_windows, "carry_closed", lambda *_: None)


@mutation(REBUILT_SOON)
def what_other_generations_have_closed_is_carried_once(patch: pytest.MonkeyPatch) -> None:
    _carry_without(patch, "closed")


@mutation(INCOMPLETE)
def a_missing_window_counts_as_closed(patch: pytest.MonkeyPatch) -> None:
    _carry_without(patch, "missing")


def _carry_without(patch: pytest.MonkeyPatch, field: str) -> None:
    """Let a switch ignore a field of what the active generation leaves out."""

    def carry(folder: CheckpointFolder, active: CheckpointFolder) -> None:
        store_windows(active, UnpublishedWindows(**stored_windows(active).model_dump(exclude={field})))
        carry_closed(folder, active)

    patch.setattr(unpublished_windows, "carry_closed", carry)


@mutation(AT_ONCE)
def activations_in_one_millisecond_have_one_epoch(patch: pytest.MonkeyPatch) -> None:
    def by_the_clock(folder: Any, generation: str, now_ms: int, _: int) -> Activation:
        return activate(folder, generation, now_ms, 0)

    patch.setattr(states, "activate", by_the_clock)


test_a_script_fails_without_a_step = mutation.script_test()
test_fresh_seeds_find_a_missing_step = mutation.seed_test()
