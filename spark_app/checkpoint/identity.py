"""The identity of a checkpoint. A job refuses one of another state model, other topics or another partition count."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from contracts.errors import problem_of
from contracts.model.application import Application
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import (
    ForeignCheckpointError,
    LostGenerationError,
    PartialCheckpointError,
    ReplacedCheckpointError,
    UnreadableCheckpointError,
)
from spark_app.query.state_model import StateModel, state_model
from spark_app.topics.identity import TopicIdentity

FILE = "stateloop.json"
QUERY_FILES = frozenset({"commits", "metadata", "offsets", "sources", "state"})
"""The files and folders of Spark in a checkpoint. A new query must find none of them."""
FORMAT: Literal[1] = 1
"""The version of the file's format. A change of its fields takes the next number, unless older files fit it."""


class CheckpointIdentity(BaseModel):
    """The job to which a checkpoint belongs."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    state_model: StateModel
    topics: dict[str, dict[str, str | int]]
    state_partitions: int

    @property
    def partitions(self) -> int:
        """Return the number of partitions of each topic."""
        return int(next(iter(self.topics.values()))["partitions"])

    def on_topics(self, topics: dict[str, dict[str, str | int]]) -> "CheckpointIdentity":
        """Return this identity with the ids of other topics, where these have the same names."""
        others = {name: facts | {"id": topics.get(name, facts)["id"]} for name, facts in self.topics.items()}
        return self.model_copy(update={"topics": others})

    def differences(self, other: "CheckpointIdentity") -> list[str]:
        """Return the differences of another identity from this one, in words."""
        differences = self.state_model.differences(other.state_model)
        if self.state_partitions != other.state_partitions:
            differences.append(f"its state has {other.state_partitions} partitions, this job {self.state_partitions}")
        for name in sorted(self.topics.keys() | other.topics.keys()):
            now, then = self.topics.get(name), other.topics.get(name)
            if now != then:
                differences.append(f"it read topic {name} as {_topic(then)}, which now is {_topic(now)}")
        return differences


class FormatVersion(BaseModel):
    """The field of stateloop.json that every release reads."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: int


class CheckpointFile(FormatVersion):
    """The content of stateloop.json."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: Literal[1]
    epoch: PositiveInt
    """The creation time of the checkpoint, in milliseconds since 1970."""
    identity: CheckpointIdentity


def identity(application: Application, topics: list[TopicIdentity], state_partitions: int) -> CheckpointIdentity:
    """The identity of the job that is about to start."""
    facts = {topic.name: topic.facts() for topic in topics}
    return CheckpointIdentity(state_model=state_model(application), topics=facts, state_partitions=state_partitions)


def claim(folder: CheckpointFolder, mine: CheckpointIdentity, now_ms: int, *, is_activated: bool = False) -> int:
    """Return the checkpoint's epoch: the time of its creation, in milliseconds since 1970.

    A new checkpoint gets this job's identity, and `now_ms` as its epoch. One that exists is compared. A generation that
    was activated exists: its epoch has snapshots, and those of an empty state have lower versions. Raises
    LostGenerationError, ForeignCheckpointError, PartialCheckpointError and UnreadableCheckpointError.
    """
    stored = found_at(folder)
    if stored is None:
        if is_activated:
            raise LostGenerationError(folder.path)
        if left := QUERY_FILES.intersection(folder.names()):
            raise PartialCheckpointError(folder.path, left)
        write(folder, mine, now_ms)
        return now_ms
    if differences := mine.differences(stored.identity):
        raise ForeignCheckpointError(folder.path, differences)
    return stored.epoch


def verify(folder: CheckpointFolder, mine: CheckpointIdentity, epoch: int) -> None:
    """Check that a checkpoint is still the one that was claimed. Raises as `claim`, and ReplacedCheckpointError."""
    stored = found_at(folder)
    if stored is None or stored.epoch != epoch:
        raise ReplacedCheckpointError(folder.path, epoch, stored.epoch if stored else None)
    if differences := mine.differences(stored.identity):
        raise ForeignCheckpointError(folder.path, differences)


def write(folder: CheckpointFolder, mine: CheckpointIdentity, epoch: int) -> None:
    """Write the folder's stateloop.json, where there is none yet."""
    folder.write_new(FILE, CheckpointFile(format=FORMAT, epoch=epoch, identity=mine).model_dump_json(indent=1))


def found_at(folder: CheckpointFolder) -> CheckpointFile | None:
    """Return the folder's stateloop.json; None where there is none. Raises UnreadableCheckpointError."""
    content = folder.read(FILE)
    return None if content is None else parse(content, folder.path)


def parse(content: str, folder: str) -> CheckpointFile:
    """Return the content of a stateloop.json. Raises UnreadableCheckpointError."""
    try:
        version = FormatVersion.model_validate_json(content).format
        if version != FORMAT:
            raise UnreadableCheckpointError(folder, f"it has format {version}, this release reads format {FORMAT}")
        return CheckpointFile.model_validate_json(content)
    except ValidationError as error:
        raise UnreadableCheckpointError(folder, problem_of(error.errors()[0])) from error


def _topic(facts: dict[str, str | int] | None) -> str:
    return "not there" if facts is None else f"{facts['id']} with {facts['partitions']} partitions"
