"""Savepoints: a copy of a checkpoint's last commit, from which another checkpoint starts.

A savepoint is a folder of any file system that Spark writes to. Its `savepoint.json` is written last: a folder without
it is an unfinished copy. A restored checkpoint has a new epoch, because the job may merge later records in another
order than before; its job publishes each window once, so that readers prefer the new epoch everywhere.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, PositiveInt, ValidationError

from contracts.errors import problem_of
from spark_app.checkpoint.commit_files import commit_files
from spark_app.checkpoint.commit_log import COMMITS, committed_positions, last_batch
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import active, active_folder
from spark_app.checkpoint.identity import CheckpointIdentity, FormatVersion, found_at, write
from spark_app.checkpoint.lease import PREFIX
from spark_app.checkpoint.republish import request_republication
from spark_app.lifecycle.errors import (
    EmptyCheckpointError,
    FilesDeletedError,
    FolderNotEmptyError,
    RestoreRefusedError,
    UnreadableSavepointError,
)
from spark_app.topics.offsets import Positions
from spark_app.topics.record_times import RecordTimes

FILE = "savepoint.json"
FORMAT: Literal[1] = 1
"""The version of the file's format. A field that older releases may ignore needs no other one."""
ATTEMPTS = 5
Open = Callable[[str], CheckpointFolder]
Leased = Callable[[], AbstractContextManager[Callable[[], object]]]
"""Gives a function that raises LeaseLostError if the lease of a checkpoint is lost."""


class Savepoint(BaseModel):
    """The content of savepoint.json. Fields that a later release has added are ignored, but for the identity's."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1]
    application: str
    created: AwareDatetime
    batch: int
    """The last committed batch of the copy."""
    epoch: PositiveInt
    """The epoch under which its job publishes."""
    identity: CheckpointIdentity
    offsets: dict[str, dict[int, int]]
    """The offset of the first record that is not merged, by topic and partition."""
    last_times: dict[str, dict[int, int]] = {}
    """The broker's time of the record before, in milliseconds since 1970, where it is known."""
    next_times: dict[str, dict[int, int]] = {}
    """The broker's time of the record at the offset, where there is one."""
    files: int
    bytes: int
    has_checksums: bool = True
    """Whether files and bytes count Hadoop's files of checksums, as those of earlier releases do."""

    @property
    def positions(self) -> Positions:
        """Return the offsets by topic and partition."""
        return positions(self.offsets)


def create(
    checkpoint: CheckpointFolder,
    target: CheckpointFolder,
    application: str,
    times: Callable[[CheckpointIdentity, Positions], RecordTimes] = lambda *_: RecordTimes(),
) -> Savepoint:
    """Copy the last commit of a checkpoint's active generation, whose job may run, into an empty folder.

    `times` looks up the times of the records around positions in the topics of an identity.

    Raises EmptyCheckpointError, FolderNotEmptyError, FilesDeletedError, UnreadableCheckpointError and
    CheckpointUnreachableError.
    """
    activation, folder = active(checkpoint), active_folder(checkpoint)
    stored = found_at(folder)
    if stored is None or last_batch(folder) is None:
        raise EmptyCheckpointError(folder.path)
    if target.names():
        raise FolderNotEmptyError(target.path)
    batch, copied = _copied(folder, target)
    sizes = [size for path, size in copied.items() if not _is_checksum(path)]
    ends = committed_positions(target) or {}
    looked_up = times(stored.identity, ends)
    savepoint = Savepoint(
        format=FORMAT,
        application=application,
        created=datetime.now(UTC),
        batch=batch,
        epoch=activation.epoch if activation else stored.epoch,
        identity=stored.identity,
        offsets=_nested(ends),
        last_times=_nested(looked_up.last),
        next_times=_nested(looked_up.next),
        files=len(sizes),
        bytes=sum(sizes),
        has_checksums=False,
    )
    target.write_new(FILE, savepoint.model_dump_json(indent=1))
    return savepoint


def _copied(folder: CheckpointFolder, target: CheckpointFolder) -> tuple[int, dict[str, int]]:
    """Copy the files of the last commit; return the batch, and the sizes of the files by their paths.

    Spark deletes the files of a batch once it has committed a hundred others. Then a later commit is copied.
    """
    for _ in range(ATTEMPTS):
        batch = last_batch(folder)
        paths = list(commit_files(folder, batch or 0))
        sizes = {path: folder.copy(path, target) for path in paths}
        copied = {path: size for path, size in sizes.items() if size is not None}
        if batch is not None and len(copied) == len(paths) and f"{COMMITS}/{batch}" in sizes:
            return batch, copied
        for path in copied:
            target.delete(path)
    raise FilesDeletedError(folder.path)


def savepoints(
    folder: CheckpointFolder, open_folder: Open, on_unreadable: Callable[[UnreadableSavepointError], object]
) -> Iterator[tuple[str, Savepoint]]:
    """Yield path and content of each complete savepoint in a folder of savepoints, the oldest first.

    `on_unreadable` receives the error of each one that this release cannot read.
    """
    complete = []
    for name in folder.names():
        path = f"{folder.path.rstrip('/')}/{name}"
        content = open_folder(path).read(FILE)
        try:
            if content is not None:
                complete.append((path, parse(content, path)))
        except UnreadableSavepointError as error:
            on_unreadable(error)
    yield from sorted(complete, key=lambda item: item[1].created)


def read(source: CheckpointFolder) -> Savepoint:
    """Return the content of a savepoint. Raises UnreadableSavepointError."""
    content = source.read(FILE)
    if content is None:
        raise UnreadableSavepointError(source.path, f"it has no {FILE}")
    return parse(content, source.path)


def restore(  # noqa: PLR0913, PLR0917  # from where, to where, as what
    source: CheckpointFolder,
    checkpoint: CheckpointFolder,
    mine: CheckpointIdentity,
    ranges: Mapping[tuple[str, int], tuple[int, int]],
    least_epoch: int,
    leased: Leased,
) -> Savepoint:
    """Create a checkpoint from a savepoint; return the savepoint.

    `mine` is the identity of the application on the topics as they are now. `ranges` has the first and the end offset
    of each of their partitions. The epoch of the checkpoint is `least_epoch`, or later than that of the savepoint.
    `leased` gives the lease of the checkpoint, and what requires it. Raises RestoreRefusedError, with each reason, as
    `read`, and what `leased` raises if a job may run.
    """
    savepoint = read(source)
    reasons = [*mine.differences(savepoint.identity), *_lost(savepoint.positions, ranges)]
    reasons += occupied(checkpoint)
    if reasons:
        raise RestoreRefusedError(source.path, reasons)
    copy_checkpoint(source, checkpoint, mine, savepoint, least_epoch, leased)
    return savepoint


def occupied(checkpoint: CheckpointFolder) -> list[str]:
    """Return that a folder has more than leases; nothing if it is empty but for them."""
    is_empty = all(name.startswith(PREFIX) for name in checkpoint.names())
    return [] if is_empty else [f"the checkpoint {checkpoint.path} is not empty"]


def copy_checkpoint(  # noqa: PLR0913, PLR0917  # from where, to where, as what
    source: CheckpointFolder,
    checkpoint: CheckpointFolder,
    mine: CheckpointIdentity,
    savepoint: Savepoint,
    least_epoch: int,
    leased: Leased,
    change: Callable[[], object] = lambda: None,
) -> None:
    """Copy a savepoint into an empty checkpoint, change that, and complete it: before, no job starts from it.

    Each file requires the lease: a job that has it may have found the folder empty. Raises RestoreRefusedError, and
    UnreadableSavepointError for a savepoint that lacks files.
    """
    _require_complete(source, savepoint)
    with leased() as require_lease:
        if reasons := occupied(checkpoint):
            raise RestoreRefusedError(source.path, reasons)
        for path in source.files():
            if path != FILE:
                require_lease()
                if source.copy(path, checkpoint) is None:
                    remedy = f"remove {checkpoint.path}, which is incomplete, and restore another savepoint"
                    raise UnreadableSavepointError(source.path, f"{path} was deleted while it was copied", remedy)
        require_lease()
        change()
        request_republication(checkpoint)
        require_lease()
        write(checkpoint, mine, max(least_epoch, savepoint.epoch + 1))  # the clock may be behind


def _require_complete(source: CheckpointFolder, savepoint: Savepoint) -> None:
    """Require that a savepoint lacks no files, and no parts of them. Raises UnreadableSavepointError.

    A copy may have more files. Programs that copy with Hadoop leave out the checksums of a local file system, or write
    them beside each file: they stand in for no data.
    """
    paths = [path for path in source.files() if path != FILE and (savepoint.has_checksums or not _is_checksum(path))]
    sizes = [source.size(path) or 0 for path in paths]
    size = sum(sizes)
    if len(sizes) < savepoint.files or size < savepoint.bytes:
        problem = f"it has {size} bytes in {len(sizes)} files, and was made with {savepoint.bytes} in {savepoint.files}"
        raise UnreadableSavepointError(source.path, problem)


def _is_checksum(path: str) -> bool:
    """Return whether a file has the checksums of another one, which Hadoop's client hides on a local file system."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(".crc")


def parse(content: str, path: str) -> Savepoint:
    """Return the content of a savepoint.json. Raises UnreadableSavepointError."""
    try:
        version = FormatVersion.model_validate_json(content).format
        if version != FORMAT:
            problem = f"it has format {version}, this release reads format {FORMAT}"
            raise UnreadableSavepointError(path, problem, "restore it with the release that made it, or a later one")
        return Savepoint.model_validate_json(content)
    except ValidationError as error:
        raise UnreadableSavepointError(path, problem_of(error.errors()[0])) from error


def _lost(positions: Positions, ranges: Mapping[tuple[str, int], tuple[int, int]]) -> Iterator[str]:
    """Yield why the job cannot continue from these positions, for each partition."""
    for (topic, number), position in sorted(positions.items()):
        first, end = ranges.get((topic, number), (0, 0))
        if position < first:
            yield (
                f"the savepoint ends at offset {position} of partition {number} of {topic}, which now begins at "
                f"{first}: {first - position} records between are gone"
            )
        if position > end:
            yield f"the savepoint ends at offset {position} of partition {number} of {topic}, which ends at {end}"


def positions(by_topic: Mapping[str, Mapping[int, int]]) -> Positions:
    """Return what a file has by topic, then partition, by both."""
    return {(topic, number): value for topic, partitions in by_topic.items() for number, value in partitions.items()}


def _nested(positions: Positions) -> dict[str, dict[int, int]]:
    by_topic: dict[str, dict[int, int]] = {}
    for (topic, number), offset in positions.items():
        by_topic.setdefault(topic, {})[number] = offset
    return by_topic
