"""Changelogs of a state that are damaged: the job forgets the batches since, and reads their records again.

Spark refuses to read such a state, at each start. Where a whole state is damaged, it reads an older one.
"""

from spark_app.checkpoint.commit_files import commit_files, is_replaced, version_of
from spark_app.checkpoint.commit_log import COMMITS, OFFSETS, forget, last_batch
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import StateDamagedError

UNREADABLE_STATE = "[CANNOT_LOAD_STATE_STORE"
"""The beginning of the conditions in Spark's errors when it does not read the state."""
CHANGELOG = ".changelog"


def require_undamaged(checkpoint: CheckpointFolder) -> None:
    """Require that no changelog is damaged which the next start reads.

    Else have the next start continue before its batch, as after a crash in that batch, and raise StateDamagedError:
    what this run of the job knows is newer than the state.
    """
    batch = first_damaged_batch(checkpoint)
    if batch is not None:
        forget_batches(checkpoint, batch)
        raise StateDamagedError(batch)


def first_damaged_batch(checkpoint: CheckpointFolder) -> int | None:
    """Return the first batch with a damaged changelog, of those that the next start needs; None without one."""
    batch = last_batch(checkpoint)
    needed = [] if batch is None else [path for path in commit_files(checkpoint, batch) if path.endswith(CHANGELOG)]
    damaged = [path for path in needed if checkpoint.is_damaged(path) and not is_replaced(checkpoint, path)]
    versions = [version_of(path) or 1 for path in damaged]
    return min(versions) - 1 if versions else None


def forget_batches(checkpoint: CheckpointFolder, first: int) -> None:
    """Remove this batch and the later ones from Spark's logs, unless the batch before them is not known any more.

    Without a batch the job begins with the first records. The last batch goes first, and its commit before its offsets:
    a crash between leaves what a crash in the middle of a batch leaves.
    """
    if first and not all(checkpoint.has(f"{log}/{first - 1}") for log in (COMMITS, OFFSETS)):
        return
    known = {int(name) for log in (COMMITS, OFFSETS) for name in checkpoint.names(log) if name.isdecimal()}
    for batch in sorted(known, reverse=True):
        for log in (COMMITS, OFFSETS) if batch >= first else ():
            forget(checkpoint, log, batch)
