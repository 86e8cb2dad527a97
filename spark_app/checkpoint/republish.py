"""Republication: a job publishes each window of its state once, under the epoch of its checkpoint.

Readers order snapshots by (window start, epoch, version). A checkpoint that was restored or rebuilt has a new epoch,
under which no window was published yet. So its job first runs one micro-batch in complete mode, in which Spark gives
every row of the state to the sink, and not only those that changed. The request names the last batch that precedes it,
so a crash repeats the batch until it is committed, and no other. If the state is damaged and the job goes back to a
batch before, it publishes each window once more.
"""

from spark_app.checkpoint.commit_log import last_batch
from spark_app.checkpoint.damage import forget_batches
from spark_app.checkpoint.folder import CheckpointFolder

FILE = "stateloop.republish"
NO_BATCH = -1


def request_republication(checkpoint: CheckpointFolder) -> None:
    """Request that the next batch of the job publishes each window.

    Spark would first repeat a batch that was planned and not committed, up to the records that it was planned for: it
    would publish the windows as they were then. So that batch is forgotten, and the next one reads all records.
    """
    last = _last(checkpoint)
    forget_batches(checkpoint, last + 1)
    checkpoint.delete(FILE)
    checkpoint.create(FILE, str(last))  # is on the disk before the activation is, unlike what is written in place


def is_republication_due(checkpoint: CheckpointFolder) -> bool:
    """Return whether the next batch has to publish each window: until one after the request is committed.

    A request that a crash of the machine left unreadable is due.
    """
    requested = checkpoint.read(FILE)
    return requested is not None and not _is_before(requested, _last(checkpoint))


def repeat_request(checkpoint: CheckpointFolder) -> None:
    """Have the request that is due name the last batch: if later ones were forgotten since, it names one of those."""
    last = str(_last(checkpoint))
    if checkpoint.read(FILE) != last:
        checkpoint.overwrite(FILE, last)


def _is_before(requested: str, last: int) -> bool:
    try:
        return int(requested) < last
    except ValueError:
        return False


def _last(checkpoint: CheckpointFolder) -> int:
    batch = last_batch(checkpoint)
    return NO_BATCH if batch is None else batch
