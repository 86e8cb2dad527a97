"""The files of a checkpoint that make up its state after one committed batch.

Spark names the state after batch `n` version `n + 1`. Files of a version never change, and Spark deletes one only when
no batch of the last hundred needs it, so they can be copied while the job runs.
"""

import re
from collections.abc import Iterator

from spark_app.backlog import COMMITS, OFFSETS
from spark_app.folder import CheckpointFolder

QUERY_ID = "metadata"
SOURCES, STATE = "sources", "state"
VERSION = re.compile(r"\.?(\d+)(?:_[0-9a-f-]+)?(?:\.\w+)*")
"""A file of one version of the state, such as `7_5cf2714d-….changelog` or `7_5cf2714d-….zip`, or its checksum."""


def commit_files(folder: CheckpointFolder, batch: int) -> Iterator[str]:
    """Yield the paths of all files that the state after this batch needs, and of older versions."""
    for name in folder.names():
        if name.strip(".").removesuffix(".crc") == QUERY_ID:
            yield name
    yield from folder.files(SOURCES)
    for log in (OFFSETS, COMMITS):
        yield from _until(folder.files(log), batch)
    yield from _until(folder.files(STATE), batch + 1)


def forget_commit(folder: CheckpointFolder, batch: int) -> None:
    """Have Spark repeat this batch, the last one, when it next starts from this copy of a checkpoint."""
    for name in (str(batch), f".{batch}.crc"):
        folder.delete(f"{COMMITS}/{name}")


def _until(paths: list[str], last: int) -> Iterator[str]:
    for path in paths:
        version = version_of(path)
        if version is None or version <= last:
            yield path


def version_of(path: str) -> int | None:
    """Return the batch or version that a file is of; None for one that several versions share."""
    found = VERSION.fullmatch(path.rpartition("/")[2])
    return int(found[1]) if found else None
