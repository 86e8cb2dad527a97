"""Events of the past in files, Parquet or JSON lines, as records of the topic of events.

They are checked by the expressions of the job. A record has the event's `ts` as its time, and the key of the state.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.wire import NEVER_WRITTEN, DeadLetter
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.lifecycle.errors import NoHistoryError, UnorderedHistoryError
from spark_app.query.columns import DEAD_LETTER
from spark_app.query.lift import TIMESTAMP_FORMAT, checked_events, dead_letter

PARQUET = ".parquet"
LINES = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
WITHOUT_OFFSET = {"timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"}
"""A time of a Parquet file that has no offset is one of UTC."""


@dataclass(frozen=True)
class HistoryFile:
    """A file, and its size in bytes."""

    path: str
    size: int


class HistoryRecord(NamedTuple):
    """A row of a file: the record for the topic of events, or a dead letter."""

    row: int
    """The number of the row; the first one is 0."""
    key: bytes | None
    value: bytes
    timestamp_ms: int
    dead_letter: bytes | None


def history_files(spark: SparkSession, paths: Iterable[str]) -> list[HistoryFile]:
    """Return the files at these paths and in these folders, in the order of their names. Raises NoHistoryError."""
    history: list[HistoryFile] = []
    for path in paths:
        parent, _, name = path.rstrip("/").rpartition("/")
        folder = CheckpointFolder(spark, path)
        inside = [file for file in folder.files() if not any(part[:1] in ("_", ".") for part in file.split("/"))]
        if inside in ([], [""]):
            folder, inside = CheckpointFolder(spark, parent or "."), [name]
        files = sorted(file for file in inside if file.endswith((PARQUET, *LINES)))
        sizes = [(file, folder.size(file)) for file in files]
        known = [HistoryFile(f"{folder.path.rstrip('/')}/{file}", size) for file, size in sizes if size is not None]
        if not known:
            raise NoHistoryError(path, (PARQUET, *LINES))
        history += known
    return history


def history_records(spark: SparkSession, application: Application, path: str, after: int) -> Iterator[HistoryRecord]:
    """Yield the rows of a file from row `after` on, in their order."""
    block = -1
    for row, (start, key, value, stamp, refused) in enumerate(_checked(_rows(spark, path), application, path)):
        if start < block:
            raise UnorderedHistoryError(path)
        block = start
        if row >= after:
            yield HistoryRecord(row, key, bytes(value or b""), stamp, _at(refused, row) if refused else None)


def _rows(spark: SparkSession, path: str) -> DataFrame:
    """Return a column `value` with each row as JSON, and the position of its block in the file."""
    start = F.col("_metadata.file_block_start").alias("start")
    if path.endswith(LINES):
        return spark.read.text(path).select(start, F.col("value").cast("binary").alias("value"))
    rows = spark.read.parquet(path)
    value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in rows.columns)), TIMESTAMP_FORMAT | WITHOUT_OFFSET)
    return rows.select(start, value.cast("binary").alias("value"))


def _checked(
    rows: DataFrame, application: Application, path: str
) -> Iterator[tuple[int, bytes, bytes, int, str | None]]:
    own = {"topic": F.lit(path), "partition": F.lit(NEVER_WRITTEN), "offset": F.lit(0).cast("bigint")}
    fields = checked_events(rows.withColumns(own), application)
    checked = fields.select(
        "start",
        "key",
        "value",
        F.unix_millis("timestamp").alias("stamp"),
        dead_letter(None).alias(DEAD_LETTER),
    )
    return map(tuple, checked.toLocalIterator(prefetchPartitions=True))


def _at(content: str, row: int) -> bytes:
    """Return a dead letter with the number of its row."""
    return DeadLetter.model_validate_json(content).model_copy(update={"offset": row}).encode()
