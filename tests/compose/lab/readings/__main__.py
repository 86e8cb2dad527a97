"""Adds up the readings that the states of a new project count, and compares topic and query service.

`python -m tests.compose.lab.readings --kafka 127.0.0.1:9092 --query PORT --at-least 100` ends when the states count so
many readings, and the query service serves each of them with its location; with --exactly they may not count more.
It prints what it saw, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from contracts.wire import Snapshot
from services.client import Client, ClientError
from tests.compose.configured import query_token
from tests.e2e.reader import Reader
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

STATE, TOPIC = "cold_store", "snapshots"
PATIENCE_S = 240.0
PAUSE_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Count: 0, or 1 with what differs."""
    options = parser().parse_args(arguments)
    reader = Reader(options.kafka, TOPIC)
    wrong = ""

    def is_complete() -> bool:
        nonlocal wrong
        reader.read()
        published = [*reader.latest.values()]
        wrong = wrong_count(published, options.at_least, is_exact=options.exactly) or unserved(
            newest(published), asyncio.run(served(options.query))
        )
        return not wrong

    try:
        until(is_complete, f"{options.at_least} readings", PATIENCE_S, PAUSE_S)
    except AssertionError as error:
        print(f"{error}: {wrong}", file=sys.stderr)
        return 1
    finally:
        reader.close()
    print(json.dumps({"readings": count(reader.latest.values()), "snapshots": reader.seen}))
    return 0


def count(published: Iterable[Snapshot]) -> int:
    """Return the number of readings that are in these windows."""
    return sum(snapshot.state["readings"] for snapshot in published)


def wrong_count(published: Sequence[Snapshot], least: int, *, is_exact: bool) -> str:
    """Return why the windows do not count `least` readings, or, unless `is_exact`, more; empty if they do."""
    counted = count(published)
    is_right = counted == least or (counted > least and not is_exact)
    return "" if is_right else f"the states count {counted} readings, not {least}"


def newest(published: Iterable[Snapshot]) -> dict[str, Snapshot]:
    """Return the newest window of each device."""
    return {snapshot.device_id: snapshot for snapshot in sorted(published, key=place)}


def unserved(published: Mapping[str, Snapshot], answers: Mapping[str, Snapshot]) -> str:
    """Return the devices that have an older answer than their snapshot, or one without location; empty if none has."""
    reached = {device for device, answer in answers.items() if place(answer) >= place(published[device])}
    old = sorted(published.keys() - reached)
    bare = sorted(device for device, answer in answers.items() if not located(answer))
    return f"older on the query service: {old}; without location: {bare}" if old or bare else ""


def located(snapshot: Snapshot) -> bool:
    """Return whether a snapshot has the result of its enrichment."""
    answer = snapshot.enrichments.get("location")
    return answer is not None and answer.result is not None


def place(snapshot: Snapshot) -> tuple[datetime, int, int]:
    """Return the place of a snapshot among those of its device."""
    return snapshot.first_seen, *snapshot.order


async def served(port: int) -> dict[str, Snapshot]:
    """Return the answer of the query service for each device; none while it does not answer."""
    try:
        async with Client(f"http://127.0.0.1:{port}", token=query_token(), discover=False) as client:
            return {found.key: Snapshot.model_validate(found.value) async for found in client.items(STATE)}
    except ClientError:
        return {}


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m tests.compose.lab.readings")
    made.add_argument("--kafka", required=True)
    made.add_argument("--query", required=True, type=int)
    made.add_argument("--at-least", required=True, type=int)
    made.add_argument("--exactly", action="store_true", help="and no more")
    return made


if __name__ == "__main__":
    sys.exit(main())
