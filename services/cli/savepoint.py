"""Copies the state of the job, lists the copies, and restores one: `stateloop savepoint create|list|restore`."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from contracts.errors import StateloopError
from contracts.settings import read
from services.cli.spark import add_application, selected, spark_session
from services.runtime.broker_check import require_broker
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.identity import identity
from spark_app.lifecycle import savepoint
from spark_app.settings import JobSettings
from spark_app.topics.identity import identify
from spark_app.topics.offsets import offset_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from contracts import Application
    from spark_app.lifecycle.savepoint import Savepoint


def main(given: Sequence[str]) -> int:
    """Run the command: 0. Return 1 after an error, which is printed in one line."""
    options = _options(given)
    try:
        settings = read(JobSettings)
        if options.run is restore:
            require_broker(settings)
        with spark_session(settings) as spark:
            each = selected(settings, options.application)
            if options.run is restore and len(each) > 1:  # a savepoint is of one application
                each = selected(settings, savepoint.read(CheckpointFolder(spark, options.path)).application)
            for application, own in each:
                options.run(spark, application, own, options.path)
    except StateloopError as error:
        print(f"stateloop savepoint: {error}", file=sys.stderr)
        return 1
    return 0


def create(spark: SparkSession, application: Application, settings: JobSettings, folder: str) -> None:
    """Copy the checkpoint's last commit into a new folder below `folder`, and print its path."""
    path = f"{folder.rstrip('/')}/{application.name}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    checkpoint = CheckpointFolder(spark, settings.checkpoint)
    made = savepoint.create(checkpoint, CheckpointFolder(spark, path), application.name)
    print(_line(path, made))


def listing(spark: SparkSession, application: Application, _: JobSettings, folder: str) -> None:
    """Print a line for each savepoint of the application in `folder`, the oldest first."""
    open_folder = partial(CheckpointFolder, spark)
    for path, found in savepoint.savepoints(open_folder(folder), open_folder):
        if found.application == application.name:
            print(_line(path, found))


def restore(spark: SparkSession, application: Application, settings: JobSettings, path: str) -> None:
    """Create the checkpoint from a savepoint. The next start of the job continues from it."""
    topics = identify(settings, application)
    mine = identity(application, topics, settings.state_partitions or topics[0].partitions)
    source, checkpoint = CheckpointFolder(spark, path), CheckpointFolder(spark, settings.checkpoint)
    found = savepoint.restore(source, checkpoint, mine, offset_ranges(settings, topics), time.time_ns() // 1_000_000)
    print(
        f"{settings.checkpoint} is {path} again ({found.files} files): start the job, which publishes each window once"
    )


def _line(path: str, one: Savepoint) -> str:
    size = f"{one.bytes / 1_000_000:.1f} MB in {one.files} files"
    return f"{path}  {one.created:%Y-%m-%d %H:%M:%S}Z  {one.application}  epoch {one.epoch}  batch {one.batch}  {size}"


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stateloop savepoint",
        description="Savepoints of the checkpoint of STATELOOP_CHECKPOINT, in a folder of any file system of Spark.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, argument, text in (
        ("create", create, "FOLDER", "copy the last commit of the job, which may run, into a new folder below FOLDER"),
        ("list", listing, "FOLDER", "list the savepoints in FOLDER"),
        ("restore", restore, "SAVEPOINT", "make the checkpoint, which must not exist, of SAVEPOINT"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("path", metavar=argument)
        add_application(command)
        command.set_defaults(run=run)
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
