"""Spark's logs in a checkpoint: the batches that are committed, and the offsets where each batch ends."""

import json

from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.topics.offsets import Positions

COMMITS, OFFSETS = "commits", "offsets"
"""The folders of the logs: a file for each committed batch, and one with the offsets where each batch ends."""


def committed_positions(checkpoint: CheckpointFolder) -> Positions | None:
    """Return the positions after the last committed batch; None without one."""
    batch = last_batch(checkpoint)
    content = None if batch is None else checkpoint.read(f"{OFFSETS}/{batch}")
    return None if content is None else parsed(content)


def committed_watermark(checkpoint: CheckpointFolder) -> int | None:
    """Return the watermark of the last committed batch, in milliseconds since 1970; None without one."""
    batch = last_batch(checkpoint)
    content = None if batch is None else checkpoint.read(f"{OFFSETS}/{batch}")
    return int(json.loads(content.splitlines()[1])["batchWatermarkMs"]) or None if content else None


def last_batch(checkpoint: CheckpointFolder) -> int | None:
    """Return the number of the last committed batch; None where there is none."""
    return max((int(name) for name in checkpoint.names(COMMITS) if name.isdecimal()), default=None)


def forget(checkpoint: CheckpointFolder, log: str, batch: int) -> None:
    """Delete the file of a batch from a log, with its checksum."""
    for name in (str(batch), f".{batch}.crc"):
        checkpoint.delete(f"{log}/{name}")


def parsed(offsets: str) -> Positions:
    """Return the positions in a file of Spark's offset log: its version, its metadata, and a line for each source."""
    sources: list[dict[str, dict[str, int]]] = [json.loads(line) for line in offsets.splitlines()[2:] if line != "-"]
    return {
        (topic, int(number)): offset
        for source in sources
        for topic, partitions in source.items()
        for number, offset in partitions.items()
    }


def move(checkpoint: CheckpointFolder, positions: Positions) -> None:
    """Have the job continue from these positions, of other topics with the same names.

    The batch before gets them too: an export repeats the last batch, which then has no records. No earlier batch can be
    repeated, as after damage: its offsets, of the former topics, are deleted.
    """
    batch = last_batch(checkpoint) or 0
    for name in checkpoint.names(OFFSETS):
        if name.isdecimal() and int(name) < batch - 1:
            forget(checkpoint, OFFSETS, int(name))
    for name in (str(batch), str(batch - 1)):
        content = checkpoint.read(f"{OFFSETS}/{name}")
        if content is not None:
            checkpoint.overwrite(f"{OFFSETS}/{name}", moved(content, positions))
            checkpoint.delete(f"{OFFSETS}/.{name}.crc")  # Spark's client for local files compares it


def moved(offsets: str, positions: Positions) -> str:
    """Return a file of Spark's offset log with other positions."""
    version, metadata, *sources = offsets.splitlines()
    return "\n".join([version, metadata, *(line if line == "-" else _source(line, positions) for line in sources)])


def _source(line: str, positions: Positions) -> str:
    topics: dict[str, dict[int, int]] = {name: {} for name in json.loads(line)}
    for (topic, number), offset in positions.items():
        if topic in topics:
            topics[topic][number] = offset
    return json.dumps(topics)
