"""Archives snapshots as Parquet: `stateloop archive FOLDER`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from contracts.errors import StateloopError
from contracts.settings import read
from services.cli.spark import add_application, selected, spark_session
from services.runtime.broker_check import require_broker
from spark_app.lifecycle.archive import BATCH, archive
from spark_app.run.supervise import first_line
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(given: Sequence[str]) -> int:
    """Run the command: 0. Return 1 after an error, which is printed in one line."""
    options = _options(given)
    try:
        settings = read(JobSettings)
        require_broker(settings)
        with spark_session(settings.at(options.path)) as spark:  # its file system decides how Spark writes its logs
            for application, own in selected(settings, options.application):
                folder = f"{options.path.rstrip('/')}/{application.name}"
                made = archive(spark, application, own, folder, batch=options.batch, skips_deleted=options.skip_deleted)
                print(f"{folder}: {made.snapshots:,} snapshots more")
                if made.undecodable:
                    left_out = f"{made.undecodable:,} records are no snapshots of this application, and were left out"
                    print(f"{folder}: {left_out}", file=sys.stderr)
    except StateloopError as error:
        print(f"stateloop archive: {error}", file=sys.stderr)
        return 1
    except PySparkException as error:
        print(f"stateloop archive: {first_line(str(error))}", file=sys.stderr)
        return 1
    return 0


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stateloop archive",
        description="Write the snapshots that are new since the last run as Parquet, and end.",
    )
    parser.add_argument("path", metavar="FOLDER", help="of any file system of Spark; has a folder for each application")
    parser.add_argument(
        "--batch", type=_count, default=BATCH, metavar="N", help=f"records in a batch (default {BATCH:,})"
    )
    parser.add_argument(
        "--skip-deleted", action="store_true", help="continue although the topic has deleted records that were not read"
    )
    add_application(parser)
    return parser.parse_args(given)


def _count(given: str) -> int:
    if not given.isdecimal() or not int(given):
        raise argparse.ArgumentTypeError("write a number of records, 1 or more")
    return int(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
