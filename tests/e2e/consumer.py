"""The consumer of docs/how-to/topics.md as a process: it imports little."""

from __future__ import annotations

import json
import sys

from tests.docs.rides import follow


def print_snapshots(kafka: str, group: str, topic: str) -> None:
    """Print each snapshot that the consumer yields, for ever."""
    for snapshot in follow(kafka, group, topic=topic):
        sys.stdout.write(f"{json.dumps(snapshot)}\n")
        sys.stdout.flush()
