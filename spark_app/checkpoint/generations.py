"""The generations of a checkpoint: the states that were built for it, of which one is active.

A checkpoint begins as one generation, in its own folder. A rebuild makes another one in a folder below it, and
activates it: from then on jobs continue from that folder. An activation is a file, `stateloop.active.<number>`; the
largest number counts. Each activation has an epoch of its own, greater than those before, also when an earlier
generation is activated again: readers then prefer what its job publishes.
"""

from collections.abc import Iterator
from typing import Protocol

from pydantic import BaseModel, ConfigDict, PositiveInt

from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import ActivationConflictError

PREFIX = "stateloop.active."
FOLDER = "generation-"
ROOT = "."
"""The generation in the checkpoint's own folder."""


class Activation(BaseModel):
    """The content of an activation's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generation: str
    """The name of the generation's folder."""
    epoch: PositiveInt

    def __str__(self) -> str:
        """Return the name of the generation for an operator."""
        return described(self.generation)


def described(generation: str) -> str:
    """Return the name of a generation for an operator."""
    return "the first one" if generation == ROOT else generation


class ReadableFolder(Protocol):
    """A folder of text files: a CheckpointFolder, or one that is read without Spark."""

    def names(self) -> list[str]:
        """Return the names of all files and folders in the folder; none if it does not exist."""
        ...

    def read(self, name: str) -> str | None:
        """Return a file's text; None where there is no such file."""
        ...


def activations(checkpoint: ReadableFolder) -> dict[int, Activation]:
    """Return all activations by their number, the first one first; none for a checkpoint that was never rebuilt.

    A file without content is none: HDFS has the name first, and the content when it is written.
    """
    contents = {number: checkpoint.read(f"{PREFIX}{number}") for number in used_numbers(checkpoint)}
    return {number: Activation.model_validate_json(content) for number, content in contents.items() if content}


def used_numbers(checkpoint: ReadableFolder) -> list[int]:
    """Return the numbers of all files of activations, also of one whose process was killed before it had content."""
    suffixes = [name.removeprefix(PREFIX) for name in checkpoint.names() if name.startswith(PREFIX)]
    return sorted(int(suffix) for suffix in suffixes if suffix.isdecimal())


def active(checkpoint: ReadableFolder) -> Activation | None:
    """Return the activation that counts; None for a checkpoint that was never rebuilt."""
    by_number = activations(checkpoint)
    return by_number[max(by_number)] if by_number else None


def active_folder(checkpoint: CheckpointFolder) -> CheckpointFolder:
    """Return the folder of the active generation."""
    activation = active(checkpoint)
    return checkpoint if activation is None else generation_folder(checkpoint, activation.generation)


def generation_folder(checkpoint: CheckpointFolder, generation: str) -> CheckpointFolder:
    """Return the folder of a generation."""
    return checkpoint if generation == ROOT else checkpoint.below(generation)


def previous(checkpoint: CheckpointFolder) -> str | None:
    """Return the generation that was active before; None without one."""
    by_number = activations(checkpoint)
    if not by_number:
        return None
    now = by_number[max(by_number)].generation
    others = [activation.generation for activation in by_number.values() if activation.generation != now]
    return others[-1] if others else (ROOT if now != ROOT else None)


def unfinished(checkpoint: CheckpointFolder) -> Iterator[str]:
    """Yield the generations that were never active, the newest first."""
    known = {activation.generation for activation in activations(checkpoint).values()}
    names = (name for name in checkpoint.names() if name.startswith(FOLDER) and name not in known)
    yield from sorted(names, reverse=True)


def activate(checkpoint: CheckpointFolder, generation: str, now_ms: int, epoch: int) -> Activation:
    """Activate this generation for the next jobs, under an epoch greater than `epoch`, the former one.

    Raises ActivationConflictError if another process activated one at the same time.
    """
    number = max(used_numbers(checkpoint), default=0) + 1
    written = Activation(generation=generation, epoch=max(now_ms, epoch + 1))
    if not checkpoint.create(f"{PREFIX}{number}", written.model_dump_json()):
        raise ActivationConflictError(checkpoint.path)
    return written
