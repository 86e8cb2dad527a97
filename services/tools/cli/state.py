"""Reads the state from a checkpoint, of a running or stopped job: `stateloop state get|export`."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F  # noqa: N812

from contracts.settings import read
from services.runtime.command_line import print_line
from services.runtime.kafka.broker_check import require_broker
from services.tools.cli.spark import selected, spark_session
from spark_app.lifecycle.export import declared, export, write_files
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from contracts import Application
    from spark_app.lifecycle.savepoint import Savepoint


def print_key(key: str, name: str | None) -> int:
    """Print each window of a key as JSON, and return how many there are. Raises StateloopError, CommandError."""
    settings = read(JobSettings)
    require_broker(settings)
    with spark_session(settings) as spark:
        return sum(_print_windows(spark, application, own, key) for application, own in selected(settings, name))


def export_files(folder: str, kind: Literal["parquet", "json"], name: str | None) -> None:
    """Write all windows to files of a kind, in a folder for each application. Raises StateloopError, CommandError."""
    settings = read(JobSettings)
    require_broker(settings)
    with spark_session(settings) as spark:
        for application, own in selected(settings, name):
            target = f"{folder.rstrip('/')}/{application.name}"
            _read(spark, application, own, partial(write_files, path=target, kind=kind))
            print(target)


def _print_windows(spark: SparkSession, application: Application, settings: JobSettings, key: str) -> int:
    lines = list[str]()
    _read(spark, application, settings, partial(_take, key=key, lines=lines))
    for line in lines:
        print_line(line)
    return len(lines)


def _read(
    spark: SparkSession, application: Application, settings: JobSettings, write: Callable[[DataFrame], object]
) -> None:
    """Pass the state to `write`, and print after which batch it is."""

    def each(rows: DataFrame, _: Savepoint) -> None:
        write(declared(rows, application))

    with tempfile.TemporaryDirectory() as scratch:
        made = export(spark, application, settings, Path(scratch), each)
    print(f"{application.name}: the state after batch {made.batch} of epoch {made.epoch}", file=sys.stderr)


def _take(rows: DataFrame, key: str, lines: list[str]) -> None:
    """Append each window of a key as JSON."""
    windows = rows.where(F.col("key") == key).orderBy("window_start")
    lines += [row.value for row in windows.select(F.to_json(F.struct("*")).alias("value")).collect()]
