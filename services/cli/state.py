"""Reads the state from a checkpoint, of a running or stopped job: `stateloop state get|export`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from contracts.errors import StateloopError
from contracts.settings import read
from services.cli.spark import add_application, selected, spark_session
from services.runtime.broker_check import require_broker
from spark_app.lifecycle.export import declared, export, write_files
from spark_app.run.supervise import first_line
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from contracts import Application
    from spark_app.lifecycle.savepoint import Savepoint

ABSENT = 3
"""The exit code where the key has no state, as that of `stateloop get`."""


def main(given: Sequence[str]) -> int:
    """Run the command: 0. Return 1 after an error, which is printed in one line."""
    options, found = _options(given), 0
    try:
        settings = read(JobSettings)
        require_broker(settings)
        with spark_session(settings) as spark:
            for application, own in selected(settings, options.application):
                found += run(spark, application, own, options)
    except StateloopError as error:
        print(f"stateloop state: {error}", file=sys.stderr)
        return 1
    except PySparkException as error:
        print(f"stateloop state: {first_line(str(error))}", file=sys.stderr)
        return 1
    return 0 if found else ABSENT


def run(spark: SparkSession, application: Application, settings: JobSettings, options: argparse.Namespace) -> int:
    """Run the command for one application; return how many windows or folders it gave."""
    lines: list[str] = []
    target = f"{options.path.rstrip('/')}/{application.name}"
    write: Callable[[DataFrame], object] = partial(write_files, path=target, kind=options.format)
    if options.command == "get":
        write = partial(_take, key=options.path, lines=lines)

    def each(rows: DataFrame, _: Savepoint) -> None:
        write(declared(rows, application))

    with tempfile.TemporaryDirectory() as scratch:
        made = export(spark, application, settings, Path(scratch), each)
    print(f"{application.name}: the state after batch {made.batch} of epoch {made.epoch}", file=sys.stderr)
    if options.command == "export":
        lines.append(target)
    print("\n".join(lines), end="\n" if lines else "")
    return len(lines)


def _take(rows: DataFrame, key: str, lines: list[str]) -> None:
    """Append each window of a key as JSON."""
    found = rows.where(F.col("key") == key).orderBy("window_start")
    lines += [row.value for row in found.select(F.to_json(F.struct("*")).alias("value")).collect()]


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stateloop state",
        description="The state after the last commit in STATELOOP_CHECKPOINT, as the job would publish it.",
    )
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    get = commands.add_parser("get", help="print the windows of a key as JSON lines")
    get.add_argument("path", metavar="KEY")
    get.set_defaults(format="json")
    export_ = commands.add_parser("export", help="write all windows to files, in a folder of the application's name")
    export_.add_argument("path", metavar="FOLDER")
    export_.add_argument("--format", choices=("parquet", "json"), default="parquet", help="default: parquet")
    for command in (get, export_):
        add_application(command)
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
