"""The files of a checkpoint that Spark needs to continue after one committed batch, or to repeat that batch.

Spark names the state after batch `n` version `n + 1`. Each version of a partition has a changelog, and some have the
whole state: a zip file that names the SST files of RocksDB. A version is read from the last whole state at or before
it and the changelogs since. Files of a version never change, and Spark deletes one only when no batch of the last
hundred needs it, so they can be copied while the job runs.
"""

import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO

from spark_app.checkpoint.commit_log import COMMITS, OFFSETS, forget
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.unpublished_windows import FILE as UNPUBLISHED_WINDOWS
from spark_app.errors import WholeStateDamagedError

QUERY_ID = "metadata"
SOURCES, STATE = "sources", "state"
VERSION = re.compile(r"\.?(\d+)(?:_[0-9a-f-]+)?(?:\.\w+)*")
"""A file of one version of the state, such as `7_5cf2714d-….changelog` or `7_5cf2714d-….zip`, or its checksum."""
PARTITION = re.compile(r"state/(\d+)/(\d+)/(?!_).+")
"""The path of a file of one partition of one operator, other than of its schema."""
CHANGES, WHOLE = ".changelog", ".zip"
"""The ends of the paths of the changes of one version of a partition, and of its whole state."""
ATTEMPT = re.compile(r"state/(\d+)/(\d+)/(\d+)_([0-9a-f-]+)\.(?:changelog|zip)")
"""The path of the changes or the whole state of one version of a partition of an operator, by one attempt."""
Partitions = Mapping[tuple[int, int], list[str]]
"""The paths of a state, by operator and partition."""
SHARED = re.compile(r"\.?(.+?)(?:\.crc)*")
"""A file that several versions share, or its checksum."""


def commit_files(folder: CheckpointFolder, batch: int) -> Iterator[str]:
    """Yield the paths of all files that are needed to continue after this batch, or to repeat it."""
    for name in folder.names():
        if name == UNPUBLISHED_WINDOWS or name.strip(".").removesuffix(".crc") == QUERY_ID:
            yield name
    yield from folder.files(SOURCES)
    partitions, others = state_files(folder)
    yield from others
    first = batch
    for paths in partitions.values():
        whole = last_whole(folder, paths, batch)
        first = min(first, whole)
        yield from _state(folder, paths, whole, batch + 1)
    for log in (OFFSETS, COMMITS):
        yield from _between(folder.files(log), first - 2, batch)


def forget_commit(folder: CheckpointFolder, batch: int) -> None:
    """Have Spark repeat this batch, the last one, when it next starts from this copy of a checkpoint."""
    forget(folder, COMMITS, batch)


def last_whole(folder: CheckpointFolder, paths: Iterable[str], last: int) -> int:
    """Return the version of the last whole state of a partition up to a version; 0 without one.

    A batch that failed, or was forgotten, may have left one of another attempt, which the commit log does not name.
    """
    versions = [(version_of(path) or 0, path) for path in paths if path.endswith(WHOLE)]
    found = (
        version for version, path in sorted(versions, reverse=True) if version <= last and not is_replaced(folder, path)
    )
    return next(found, 0)


def shared_files(folder: CheckpointFolder, whole: str) -> set[str]:
    """Return the names of the files that a whole state consists of, other than those in its zip file.

    Raises WholeStateDamagedError.
    """
    content = folder.read_bytes(whole)
    if content is None:  # deleted meanwhile
        return set()
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            files = json.loads(archive.read("metadata").splitlines()[1])
        named = [file["dfsSstFileName"] for file in files.get("sstFiles", ())]
        return {*named, *(file["dfsLogFileName"] for file in files.get("logFiles", ()))}
    except Exception as error:  # of zipfile, each decompressor, or json: by which bit is flipped
        raise WholeStateDamagedError(f"{folder.path}/{whole}") from error


def is_replaced(folder: CheckpointFolder, path: str) -> bool:
    """Return whether a file is of an attempt that the commit log does not name: Spark reads another one.

    It may read each attempt of a batch whose commit it has deleted.
    """
    match = ATTEMPT.fullmatch(path)
    if match is None:
        return False
    operator, partition, version = (int(number) for number in match.groups()[:3])
    attempts = _attempts(folder, version - 1, operator, partition)
    return bool(attempts) and match[4] not in attempts


def state_files(folder: CheckpointFolder) -> tuple[Partitions, list[str]]:
    """Return the paths of the state: by operator and partition, and those of no partition. It lists the whole state."""
    partitions, others = defaultdict[tuple[int, int], list[str]](list), list[str]()
    for path in folder.files(STATE):
        match = PARTITION.fullmatch(path)
        if match is None:
            others.append(path)
        else:
            partitions[int(match[1]), int(match[2])].append(path)
    return partitions, others


def _attempts(folder: CheckpointFolder, batch: int, operator: int, partition: int) -> list[str]:
    """Return what the commit log names the state of a partition after a batch."""
    content = folder.read(f"{COMMITS}/{batch}")
    if content is None:
        return []
    ids: dict[str, list[list[str]]] = json.loads(content.splitlines()[1]).get("stateUniqueIds") or {}
    partitions = ids.get(str(operator), [])
    return partitions[partition] if partition < len(partitions) else []


def _state(folder: CheckpointFolder, paths: Iterable[str], first: int, last: int) -> Iterator[str]:
    """Yield the files of these versions of a partition, but the whole states of attempts that were replaced."""
    shared, needed = [], set[str]()
    for path in paths:
        version = version_of(path)
        if version is None:
            shared.append(path)
        elif first <= version <= last and not (path.endswith(WHOLE) and is_replaced(folder, path)):
            yield path
            if path.endswith(WHOLE):
                needed |= shared_files(folder, path)
    for path in shared:
        name = SHARED.fullmatch(path.rpartition("/")[2])
        if name and name[1] in needed:
            yield path


def _between(paths: Iterable[str], first: int, last: int) -> Iterator[str]:
    for path in paths:
        version = version_of(path)  # None for a temporary file, which Spark is about to rename
        if version is not None and first <= version <= last:
            yield path


def version_of(path: str) -> int | None:
    """Return the batch or version that a file is of; None for one that several versions share."""
    match = VERSION.fullmatch(path.rpartition("/")[2])
    return int(match[1]) if match else None
