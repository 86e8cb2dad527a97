"""Makes savepoints of the model's job, and restores them, with the product's own decisions on folders in memory.

The last commit of the model is written as the files of Spark that the product reads: the logs of offsets and commits,
and a file of the state, which here is the commit itself.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from contracts.errors import StateloopError
from services.runtime.kafka.values import Partition
from spark_app.checkpoint.commit_log import COMMITS, OFFSETS, committed_positions, last_batch
from spark_app.checkpoint.identity import found_at, identity, write
from spark_app.checkpoint.republish import is_republication_due
from spark_app.checkpoint.unpublished_windows import store_windows, stored_windows
from spark_app.lifecycle import savepoint
from spark_app.topics.identity import TopicIdentity, sources

if TYPE_CHECKING:
    from datetime import datetime

    from contracts import Application
    from spark_app.checkpoint.identity import CheckpointIdentity
    from tests.simulation.network import WatchedBroker
    from tests.simulation.query import Commit

BATCH = 7


class MemoryFolder:
    """A folder in memory. Has what the product's savepoints and generations use of CheckpointFolder."""

    is_exclusive = True

    def __init__(self, path: str) -> None:
        self.path = path
        self._contents: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        """See `CheckpointFolder.has`."""
        return name in self._contents or bool(self._below(name))

    def names(self, name: str = ".") -> list[str]:
        """See `CheckpointFolder.names`."""
        return list({path.split("/")[0]: None for path in self._below(name)})

    def files(self, name: str = ".") -> list[str]:
        """See `CheckpointFolder.files`."""
        return [path if name == "." else f"{name}/{path}" for path in self._below(name)]

    def read(self, name: str) -> Any:
        """See `CheckpointFolder.read`."""
        return self._contents.get(name)

    def copy(self, name: str, target: MemoryFolder) -> int:
        """See `CheckpointFolder.copy`."""
        target.overwrite(name, self._contents[name])
        return 1

    def size(self, name: str) -> int | None:
        """See `CheckpointFolder.size`."""
        return 1 if name in self._contents else None

    def write_new(self, name: str, content: Any) -> None:
        """See `CheckpointFolder.write_new`."""
        self._contents.setdefault(name, content)

    def create(self, name: str, content: Any) -> bool:
        """See `CheckpointFolder.create`."""
        is_new = name not in self._contents
        self.write_new(name, content)
        return is_new

    def overwrite(self, name: str, content: Any) -> None:
        """See `CheckpointFolder.overwrite`."""
        self._contents[name] = content

    def delete(self, name: str) -> None:
        """See `CheckpointFolder.delete`."""
        self._contents.pop(name, None)

    def _below(self, name: str) -> list[str]:
        begin = "" if name == "." else f"{name}/"
        return [path.removeprefix(begin) for path in self._contents if path.startswith(begin)]


class Savepoints:
    """The savepoints of a job. `restore` takes the last one."""

    def __init__(self, application: Application, broker: WatchedBroker) -> None:
        self.refusals: list[str] = []
        """The reasons for which savepoints were not restored."""
        self._application = application
        self._broker = broker
        self._last: MemoryFolder | None = None

    def create(self, commit: Commit) -> None:
        """Copy the last commit of the job, which runs. Without one there is no savepoint."""
        source, target = self._checkpoint(commit), MemoryFolder("the savepoint")
        try:
            savepoint.create(source, target, self._application.name)  # type: ignore[arg-type]  # in memory
        except StateloopError:
            return
        self._last = target

    def restore(self, now_ms: int) -> Commit | None:
        """Return the state with which the next job begins; None if there is no savepoint, or it is refused."""
        if self._last is None:
            return None
        folder: Any = MemoryFolder("the checkpoint")
        logs = self._broker.topics
        ranges = {
            (name, number): (log.start, log.end)
            for name in sources(self._application)
            for number, log in enumerate(logs.topic(name).logs)
        }
        counts = {name: len(logs.topic(name).logs) for name in sources(self._application)}
        try:
            savepoint.restore(
                self._last,  # type: ignore[arg-type]  # in memory
                folder,
                self._identity(counts),
                ranges,
                now_ms,
                lambda: nullcontext(lambda: None),
            )
        except StateloopError as error:
            self.refusals.append(str(error))
            return None
        return self._commit(folder)

    def _checkpoint(self, commit: Commit) -> Any:
        folder: Any = MemoryFolder("the checkpoint")
        counts = {name: sum(place.topic == name for place in commit.positions) for name in sources(self._application)}
        write(folder, self._identity(counts), commit.epoch)
        if commit.is_built:
            write_closed(folder, commit)
            folder.overwrite(f"state/0/0/{BATCH + 1}.changelog", commit)
        return folder

    def _commit(self, folder: Any) -> Commit:
        """Return the state in a checkpoint: its job publishes each window of it once."""
        stored, positions = found_at(folder), committed_positions(folder) or {}
        assert stored is not None
        saved: Commit = folder.read(f"state/0/0/{(last_batch(folder) or 0) + 1}.changelog")
        return replace(
            saved,
            epoch=stored.epoch,
            positions={Partition(*place): offset for place, offset in positions.items()},
            unpublished=stored_windows(folder),
            is_built=not is_republication_due(folder),
        )

    def _identity(self, counts: dict[str, int]) -> CheckpointIdentity:
        topics = [TopicIdentity(name, self._broker.topics.topic(name).id, count) for name, count in counts.items()]
        return identity(self._application, topics, topics[0].partitions)


def write_closed(folder: Any, commit: Commit) -> None:
    """Write what a state leaves out, and the logs of its last batch: positions, and the watermark of what is closed.

    Spark has the offsets of the batch before too, and does not start without them.
    """
    store_windows(folder, commit.unpublished)
    metadata = {"batchWatermarkMs": 0 if commit.closed is None else milliseconds(commit.closed)}
    for batch in (BATCH - 1, BATCH):
        folder.overwrite(f"{OFFSETS}/{batch}", "\n".join(["v1", *map(json.dumps, (metadata, *_by_topic(commit)))]))
    folder.overwrite(f"{COMMITS}/{BATCH}", "v1\n{}")


def milliseconds(time: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return round(time.timestamp() * 1000)


def _by_topic(commit: Commit) -> list[dict[str, dict[str, int]]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in commit.positions.items():
        found.setdefault(topic, {})[str(number)] = offset
    return [{topic: numbers} for topic, numbers in found.items()]
