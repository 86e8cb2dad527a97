"""Each step of a restore is necessary: without it, a script fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_app.checkpoint import commit_log
from spark_app.checkpoint.identity import CheckpointIdentity, write
from spark_app.lifecycle import savepoint
from tests.simulation.generate import script as script_of
from tests.simulation.mutations import Mutations
from tests.simulation.script import Fault, FormerJob, Savepoint, Script
from tests.simulation.states import EPOCH
from tests.simulation.steps import sent
from tests.simulation.verdict import verdict

if TYPE_CHECKING:
    import pytest

    from spark_app.checkpoint.folder import CheckpointFolder
    from spark_app.topics.offsets import Positions

mutation = Mutations(script_of, verdict)

RESTORE = Fault(400.0, "restore", "job", 5.0)
RESTORED = Script(
    1,
    (sent(10.0), Savepoint(200.0), sent(300.0, "e1"), RESTORE, sent(500.0, "e2"), FormerJob(900.0)),
    partitions=1,
)
GROWN = Script(
    1,
    (sent(10.0), Savepoint(90.0), Fault(100.0, "growth", "job", 60.0, 4), RESTORE, sent(800.0, "e2")),
    partitions=1,
)


@mutation(RESTORED)
def a_restored_state_has_the_former_epoch(patch: pytest.MonkeyPatch) -> None:
    def former(folder: CheckpointFolder, mine: CheckpointIdentity, _: int) -> None:
        write(folder, mine, EPOCH)

    patch.setattr(savepoint, "write", former)


@mutation(RESTORED, is_found_by_seeds=True)
def a_restored_job_leaves_a_record_out(patch: pytest.MonkeyPatch) -> None:
    parsed = commit_log.parsed

    def later(offsets: str) -> Positions:
        return {place: offset + 1 for place, offset in parsed(offsets).items()}

    patch.setattr(commit_log, "parsed", later)


@mutation(GROWN)
def a_savepoint_of_fewer_partitions_is_restored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CheckpointIdentity, "differences", lambda *_: [])


test_a_script_fails_without_a_step = mutation.script_test()
test_fresh_seeds_find_a_missing_step = mutation.seed_test()
