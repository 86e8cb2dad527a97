"""Reads every snapshot where the stack publishes its broker, and holds each flight's last one to the oracle.

`python -m tests.compose.lab.judge --kafka 127.0.0.1:9092 --day 2013-01-01` ends when all flights of the day agree;
with --seen N as soon as N snapshots were seen. It prints what it saw, as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from typing import TYPE_CHECKING

from examples.flights.application import app
from tests.e2e.comparison import Comparison
from tests.e2e.reader import Reader
from tests.examples.flights.oracle import expected
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge: 0, or 1 with what differs."""
    options = parser().parse_args(arguments)
    reader = Reader(options.kafka, app.topics.snapshots)
    comparison = Comparison(reader, expected(options.day))
    try:
        if options.seen:
            until(lambda: reader.read() >= options.seen, f"{options.seen} snapshots", options.patience)
        else:
            until(comparison.agrees, "all flights as in the tables", options.patience)
            if not options.republished:
                comparison.require_order()
    except AssertionError as error:
        print(f"{error}: {reader.seen} snapshots seen; {comparison.first_differences()}", file=sys.stderr)
        return 1
    finally:
        reader.close()
    print(json.dumps(report(comparison)))
    return 0


def report(comparison: Comparison) -> dict[str, int]:
    """Return the counts of the comparison."""
    latest = comparison.reader.latest.values()
    return {
        "flights": len(comparison.right),
        "windows": len(latest),
        "snapshots": comparison.reader.seen,
        "again": comparison.reader.seen - sum(snapshot.version for snapshot in latest),
        "rewinds": comparison.reader.published.rewinds(),
    }


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m tests.compose.lab.judge")
    made.add_argument("--kafka", required=True)
    made.add_argument("--day", required=True, type=date.fromisoformat)
    made.add_argument("--seen", type=int, default=0)
    made.add_argument("--republished", action="store_true", help="the job has published its windows anew")
    made.add_argument("--patience", type=float, default=240.0)
    return made


if __name__ == "__main__":
    sys.exit(main())
