"""Whose checkpoint this is. A checkpoint of another state model, other topics or another partition count is refused."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from contracts.application import Application
from spark_app.errors import ForeignCheckpoint
from spark_app.lift import LIFE, ONCE, kinds
from spark_app.topics import TopicIdentity

FILE = "stateloop.json"


@dataclass(frozen=True)
class Identity:
    """What a checkpoint belongs to."""

    state_model: str
    topics: dict[str, dict[str, str | int]]
    state_partitions: int

    def differences(self, other: "Identity") -> list[str]:
        """In what another identity differs from this one, in words."""
        found = []
        if self.state_model != other.state_model:
            found.append(f"its state model is {other.state_model}, the application's is {self.state_model}")
        if self.state_partitions != other.state_partitions:
            found.append(f"its state has {other.state_partitions} partitions, this job {self.state_partitions}")
        for name in sorted(self.topics.keys() | other.topics.keys()):
            now, then = self.topics.get(name), other.topics.get(name)
            if now != then:
                found.append(f"it read topic {name} as {_topic(then)}, which now is {_topic(now)}")
        return found


def identity(application: Application, topics: list[TopicIdentity], state_partitions: int) -> Identity:
    """The identity of the job that is about to start."""
    return Identity(state_model(application), {topic.name: topic.facts() for topic in topics}, state_partitions)


def state_model(application: Application) -> str:
    """A short name for all that the layout and the meaning of the state depend on."""
    meaning = {
        "columns": kinds(application),
        "reducers": {name: repr(reducer) for name, reducer in application.reducers.items()},
        "sources": application.sources,
        "key": application.state.key,
        "life": LIFE,
        "deduplicate": ONCE if application.deduplicate else None,
    }
    digest = hashlib.blake2b(json.dumps(meaning, sort_keys=True).encode(), digest_size=6).hexdigest()
    return f"{application.state.__name__}-{digest}"


def claim(spark: SparkSession, folder: str, mine: Identity) -> None:
    """Write this job's identity into a new checkpoint, or compare it with what is there.

    Raises ForeignCheckpoint.
    """
    hadoop = _Folder(spark, folder)
    written = hadoop.read(FILE)
    if written is not None:
        differences = mine.differences(Identity(**json.loads(written)))
    else:
        differences = ["it has no stateloop.json"] if hadoop.has("offsets") else []
    if differences:
        raise ForeignCheckpoint(folder, differences)
    if written is None:
        hadoop.write(FILE, json.dumps(mine.__dict__, indent=1))


def _topic(facts: dict[str, str | int] | None) -> str:
    return "not there" if facts is None else f"{facts['id']} with {facts['partitions']} partitions"


class _Folder:
    """A folder on whatever file system the checkpoint is on, through Hadoop's client, which Spark brings."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        context: Any = spark.sparkContext
        self._path = context._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001  # PySpark has no public way
        self._folder = folder
        self._fs = self._path(folder).getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        self._io = context._jvm.org.apache.commons.io.IOUtils  # noqa: SLF001

    def has(self, name: str) -> bool:
        return bool(self._fs.exists(self._path(self._folder, name)))

    def read(self, name: str) -> str | None:
        if not self.has(name):
            return None
        stream = self._fs.open(self._path(self._folder, name))
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, content: str) -> None:
        """Whole or not at all: a crash leaves no half of it under this name."""
        unfinished, finished = self._path(self._folder, f".{name}.tmp"), self._path(self._folder, name)
        stream = self._fs.create(unfinished)
        try:
            stream.write(content.encode())
        finally:
            stream.close()
        self._fs.rename(unfinished, finished)
