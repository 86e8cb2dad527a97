"""`stateloop archive`."""

import sys
from typing import Annotated

from cyclopts import Parameter

from services.tools.cli.commands.parameters import ApplicationName, count, parsed

BATCH = 500_000


def archive(
    folder: str,
    /,
    *,
    batch: Annotated[int, parsed(count, metavar="N", help=f"records in a batch (default {BATCH:,})")] = BATCH,
    skip_deleted: Annotated[
        bool, Parameter(help="continue although the topic has deleted records that were not read")
    ] = False,
    application: ApplicationName = None,
) -> None:
    """Write the snapshots that are new since the last run as Parquet, and end.

    FOLDER is of any file system of Spark, and has a folder for each application.
    """
    from contracts.settings import read
    from services.runtime.kafka.broker_check import require_broker
    from services.tools.cli.spark import selected, spark_session
    from spark_app.lifecycle import archive as spark_archive
    from spark_app.settings import JobSettings

    settings = read(JobSettings)
    require_broker(settings)
    with spark_session(settings.at(folder)) as spark:  # its file system decides how Spark writes its logs
        for chosen, own in selected(settings, application):
            path = f"{folder.rstrip('/')}/{chosen.name}"
            made = spark_archive.archive(spark, chosen, own, path, batch=batch, skips_deleted=skip_deleted)
            print(f"{path}: {made.snapshots:,} snapshots more")
            if made.undecodable:
                left_out = f"{made.undecodable:,} records are no snapshots of this application, and were left out"
                print(f"{path}: {left_out}", file=sys.stderr)
