"""Upgrades a loop under load: `python -m tests.compatibility.upgrade CHECKOUT FOLDER [SEED…]`.

The checkout is of the version before. Its processes make the topics, a checkpoint and consumer groups. While events go
on, each part is replaced by the present one, as docs/how-to/upgrade.md says: some after SIGTERM, some after a kill -9,
some beside the old one, in the order that the seed gives. At the end each state, call, alert and row must be as a plain
fold has it. The folder has the logs. It exits with 1 if a promise is broken.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import redis

from tests.compatibility.upgrade_apis import Apis, is_uncommitted, repeated
from tests.compatibility.upgrade_commits import watch
from tests.compatibility.upgrade_judge import Reader, judge, reread_calls
from tests.compatibility.upgrade_loop import (
    BETWEEN_S,
    IS_KILLED,
    PATIENCE_S,
    RUNS_BESIDE,
    STOPS,
    Row,
    Upgrade,
    end,
    report,
    until,
    upgrade_seeds,
)

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ("spark_app", "services.enrichment", "services.derive", "services.sink")
WAYS = (STOPS, IS_KILLED, RUNS_BESIDE)
QUIET_S = 20


def upgrade(before: Path, folder: Path, seed: int) -> list[Row]:
    """Upgrade a loop, and return what became of it."""
    Apis.calls.clear()
    Apis.deliveries.clear()
    with ExitStack() as running:
        loop, is_over = Upgrade(before, folder, running, seed), threading.Event()
        server = ["redis-server", "--port", str(loop.redis_port), "--bind", "127.0.0.1", "--save", ""]
        running.callback(end, subprocess.Popen(server, cwd=folder, stdout=subprocess.DEVNULL))
        store = redis.Redis(port=loop.redis_port, decode_responses=True)
        loop.start("services.tools.broker", before)
        loop.await_broker()
        loop.run("services.tools.topics", before)
        sender = threading.Thread(target=loop.send, args=(is_over,))
        watcher = threading.Thread(target=watch, args=(loop.kafka, loop.commits, is_over))
        running.callback(is_over.set)
        sender.start()
        watcher.start()
        for part in PARTS:
            loop.start(part, before)
        until(
            lambda: loop.are_running() and store.dbsize() > 100 and Apis.deliveries,
            "rows and deliveries of the old version",
        )
        time.sleep(2 * BETWEEN_S)
        replace_all(loop, random.Random(seed))
        is_over.set()
        sender.join(PATIENCE_S)
        watcher.join(PATIENCE_S)
        return settle(loop, store)


def replace_all(loop: Upgrade, chance: random.Random) -> None:
    """Replace all parts, in an order and by ways that the seed gives."""
    report(f"{loop.load.sent} events are sent, {len(Apis.calls)} calls made by the old version")
    for part in chance.sample(PARTS, len(PARTS)):
        ways = WAYS[:2] if part == "spark_app" else WAYS  # one job at a time
        loop.replace(part, chance.choice(ways))
        time.sleep(BETWEEN_S)
    loop.replace_broker()
    time.sleep(BETWEEN_S)


def settle(loop: Upgrade, store: redis.Redis) -> list[Row]:
    """Wait until nothing changes any more: for longer while a promise is not kept yet. Return the judgement."""
    reader, changed, former = Reader(loop.kafka), time.monotonic(), None
    while True:
        loop.are_running()
        published = reader.read()
        rows = judge(loop.load, published, store, loop.outages, loop.handovers)
        seen = rows, published.again, len(Apis.calls), len(Apis.deliveries)
        if seen != former:
            changed, former = time.monotonic(), seen
        is_right = all(right for *_, right in rows)
        if time.monotonic() > changed + (QUIET_S if is_right else 4 * QUIET_S):
            report(
                f"{published.again} snapshots were published again; the broker's and workers' outages: {loop.outages}"
            )
            reread = reread_calls(loop.load, published, loop.handovers)
            for call in (*repeated(Apis.calls), *repeated(Apis.deliveries)):
                if call.name not in reread and not is_uncommitted(call, loop.outages):
                    report(f"again without a reason: {call}")
            return rows
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(upgrade_seeds(upgrade))
