"""Files of a state that are damaged: the job forgets the batches since, and reads their records again.

Spark refuses to read such a state, at each start. It reads an older one than a damaged whole state only as long as it
has all changelogs since the first batch.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from spark_app.checkpoint.commit_files import (
    CHANGES,
    WHOLE,
    is_replaced,
    last_whole,
    shared_files,
    state_files,
    version_of,
)
from spark_app.checkpoint.commit_log import COMMITS, OFFSETS, forget, last_batch
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import StateDamagedError, UnreadableStateError, WholeStateDamagedError

UNREADABLE_STATE = "[CANNOT_LOAD_STATE_STORE"
"""The beginning of the conditions in Spark's errors when it does not read the state."""
FAILURES = 3
"""The failures in a row after which the whole states are read, which may be large: a damaged file fails each time."""


def require_undamaged(checkpoint: CheckpointFolder, failures: int, require_lease: Callable[[], object]) -> None:
    """Require that no changelog is damaged which the next start reads; after some failures, no whole state either.

    Else have the next start continue before its batch, as after a crash in that batch, and raise StateDamagedError:
    what this run of the job knows is newer than the state. Raises UnreadableStateError, and forgets nothing, if no
    earlier state can be read. `require_lease` raises an error if another job continues from the checkpoint: to read it
    may take minutes.
    """
    batch = first_damaged_batch(checkpoint, with_whole_states=failures >= FAILURES)
    if batch is not None:
        forget_batches(checkpoint, batch, require_lease)
        delete_whole_states(checkpoint, batch, require_lease)
        raise StateDamagedError(batch)


def first_damaged_batch(checkpoint: CheckpointFolder, *, with_whole_states: bool) -> int | None:
    """Return the first batch after which the state cannot be read until the last one; None without one."""
    is_damaged = cache(checkpoint.is_damaged)  # the states before need most files too
    last = batch = last_batch(checkpoint)
    partitions, _ = state_files(checkpoint)
    while batch is not None and batch >= 0:
        versions = [
            version
            for paths in partitions.values()
            for version in _damaged_versions(checkpoint, paths, batch, is_damaged, with_whole_states=with_whole_states)
        ]
        if not versions:
            break
        batch = min(versions) - 2  # the state before the version's batch may need another whole state
    return None if batch is None or batch == last else batch + 1


def _damaged_versions(
    checkpoint: CheckpointFolder,
    paths: Sequence[str],
    batch: int,
    is_damaged: Callable[[str], bool],
    *,
    with_whole_states: bool,
) -> Iterator[int]:
    """Yield the versions whose files are damaged or gone, of those from which a partition is read after a batch."""
    last = batch + 1
    whole = last_whole(checkpoint, paths, last)
    changes = [
        (version, path)
        for path in paths
        if path.endswith(CHANGES)
        and whole < (version := version_of(path) or 0) <= last
        and not is_replaced(checkpoint, path)
    ]
    yield from {*range(whole + 1, last + 1)}.difference(version for version, _ in changes)
    yield from (version for version, path in changes if is_damaged(path))
    for name in paths if with_whole_states else ():
        is_last = name.endswith(WHOLE) and version_of(name) == whole
        if is_last and not is_replaced(checkpoint, name) and _is_whole_damaged(checkpoint, name, paths, is_damaged):
            yield whole


def _is_whole_damaged(
    checkpoint: CheckpointFolder, whole: str, paths: Sequence[str], is_damaged: Callable[[str], bool]
) -> bool:
    """Return whether any file of a whole state is damaged or gone. The zip file may be without a checksum, and cut."""
    try:
        names = shared_files(checkpoint, whole)
    except WholeStateDamagedError:
        return True
    shared = [path for path in paths if path.rpartition("/")[2] in names]
    return len(shared) < len(names) or any(map(is_damaged, (whole, *shared)))


def forget_batches(
    checkpoint: CheckpointFolder, first: int, require_lease: Callable[[], object] = lambda: None
) -> None:
    """Remove this batch and the later ones from Spark's logs.

    Without a batch the job begins with the first records. The last batch goes first, and its commit before its offsets:
    a crash between leaves what a crash in the middle of a batch leaves. Raises UnreadableStateError if the batch before
    them is not known any more, or the offsets of the one before it, without which Spark does not start.
    """
    require_lease()
    logs = (COMMITS, OFFSETS)
    commits, offsets = ({int(name) for name in checkpoint.names(log) if name.isdecimal()} for log in logs)
    before = {first - 1, max(first - 2, 0)}
    can_continue = first - 1 in commits and before <= offsets if first else min(offsets, default=0) == 0
    if not can_continue:
        raise UnreadableStateError(checkpoint.path)
    for batch in sorted(commits | offsets, reverse=True):
        for log in (COMMITS, OFFSETS) if batch >= first else ():
            require_lease()
            forget(checkpoint, log, batch)


def delete_whole_states(checkpoint: CheckpointFolder, batch: int, require_lease: Callable[[], object]) -> None:
    """Delete the zip files, and their checksums, of the states after this batch and the later ones.

    Spark reads every zip file of a partition before it deletes old files there, and deletes none while one is damaged.
    """
    partitions, _ = state_files(checkpoint)
    for path in (path for paths in partitions.values() for path in paths):
        if WHOLE in path and (version_of(path) or 0) > batch:
            require_lease()
            checkpoint.delete(path)
