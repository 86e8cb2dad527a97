"""Reads the snapshots of some keys from a checkpoint, to compare them with the published ones."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.wire import Snapshot, decode_snapshot
from spark_app.checkpoint.commit_log import COMMITS
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import active_folder
from spark_app.checkpoint.unpublished_windows import UnpublishedWindows, stored_windows
from spark_app.lifecycle.export import export
from spark_app.lifecycle.savepoint import Savepoint
from spark_app.query.columns import DEAD_LETTER, DEVICE_ID
from spark_app.query.merge import published
from spark_app.settings import JobSettings

KEY = "key"


@dataclass(frozen=True)
class PublishedState:
    """The snapshots of some keys after the last commit of a checkpoint."""

    commit: Savepoint
    committed: datetime | None
    """The time of the job's last commit, by the file system's clock."""
    snapshots: list[Snapshot]
    unpublished: frozenset[str]
    """The keys with a window that is too large to be published."""
    unpublished_windows: UnpublishedWindows
    """The windows that the job does not publish, by the times at which they begin."""


def published_state(
    spark: SparkSession,
    application: Application,
    settings: JobSettings,
    scratch: Path,
    choose: Callable[[DataFrame], Collection[str]],
) -> PublishedState:
    """Return the snapshots of the chosen keys, of all in a column `key`. Raises as `export`."""
    snapshots: list[Snapshot] = []
    unpublished: set[str] = set()

    def take(rows: DataFrame, made: Savepoint) -> None:
        rows = rows.localCheckpoint()  # the state can be read once in a batch; Spark may confuse equal cached plans
        windows = rows.where(F.col(DEVICE_ID).isNotNull() & F.col(DEAD_LETTER).isNull())
        keys = choose(windows.select(F.col(DEVICE_ID).alias(KEY)).distinct())
        records = published(windows.where(F.col(DEVICE_ID).isin(*keys)), application, made.epoch, partitions=1)
        for key, topic, value in records.select("key", "topic", "value").collect():
            if topic == application.topics.snapshots:
                snapshots.append(decode_snapshot(value.encode()))
            else:
                unpublished.add(key)

    made = export(spark, application, settings, scratch, take)
    folder = active_folder(CheckpointFolder(spark, settings.checkpoint))
    committed = folder.modified(f"{COMMITS}/{made.batch}")
    return PublishedState(made, committed, snapshots, frozenset(unpublished), stored_windows(folder))
