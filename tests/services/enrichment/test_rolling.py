"""Workers are restarted one after the other under load: nothing lost, nothing out of order, no call made twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter, defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from contracts.planning.fingerprint import fingerprint
from tests.deadline import DEADLINE_S
from tests.services.enrichment.cluster import GROUPS, Cluster, condition
from tests.services.enrichment.fleet import app, snapshot

if TYPE_CHECKING:
    from contracts.wire import Feedback, Snapshot
    from tests.forked import Forked
    from tests.services.enrichment.registry import Registry
    from tests.services.tools.broker.embedded import EmbeddedBroker

EVERY_S = float(os.environ.get("ROLLING_EVERY_S", "1.5"))
"""The time between two restarts; a careful operator waits 10 s."""
RESTARTS = int(os.environ.get("ROLLING_RESTARTS", "3"))
WORKERS = 2
DEVICES = 40
ROUND_S = 0.25
"""Each device sends a snapshot in each round, with another plate."""
SLOW = 10
"""Every so many devices there is one whose calls take longer than a round, so that later ones return first."""


class Traffic:
    """Snapshots of all devices, round after round."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.rounds = 0
        self.over = asyncio.Event()

    async def flow(self) -> None:
        while not self.over.is_set():
            self.rounds += 1
            await asyncio.to_thread(self._cluster.publish, *(car(n, self.rounds) for n in range(DEVICES)))
            await asyncio.wait([asyncio.ensure_future(self.over.wait())], timeout=ROUND_S)


def car(number: int, version: int) -> Snapshot:
    return snapshot(version, plate(number, version), f"d{number}")


def plate(number: int, version: int) -> str:
    return f"{'slow' if number % SLOW == 0 else 'P'}-{number}-{version}"


@pytest.mark.parametrize("group", list(GROUPS))
async def test_a_rolling_restart_under_load(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, registry: Registry, group: str
) -> None:
    cluster, settings = (
        Cluster(broker.bootstrap, topics_prefix, tmp_path),
        GROUPS[group] | {"stats_every": "0.1", "drain": "10"},
    )
    registry.latency = 0.02
    traffic = Traffic(cluster)
    with ExitStack() as stack:
        running = [stack.enter_context(cluster.worker(registry.url, **settings)) for _ in range(WORKERS)]
        await condition(lambda: sum(cluster.stats("partitions").values()) == 4, "all partitions are assigned")
        flowing = asyncio.create_task(traffic.flow())
        for _ in range(RESTARTS):
            await asyncio.sleep(EVERY_S)
            await condition(partial(called_since, registry, registry.calls.total()), "calls are made")
            running.append(stack.enter_context(cluster.worker(registry.url, **settings)))
            await stopped(running.pop(0))
        traffic.over.set()
        await flowing
        await condition(lambda: cluster.committed() == DEVICES * traffic.rounds, "all committed")
        for process in running:
            await stopped(process)
    found = await asyncio.to_thread(cluster.feedback, lambda found: last_inputs_answered(found, traffic.rounds))
    assert out_of_order(found) == {}, cluster.log()
    assert [path for path, calls in registry.calls.items() if calls > 1] == [], cluster.log()


def called_since(registry: Registry, before: int) -> bool:
    return registry.calls.total() > before


def handles_sigterm(process: Forked) -> bool:
    """Whether it is so far that SIGTERM stops it in order; before that, it ends a Python process at once."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


async def stopped(process: Forked) -> None:
    await condition(lambda: handles_sigterm(process), "the worker handles SIGTERM")
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0


def last_inputs_answered(found: list[Feedback], rounds: int) -> bool:
    """Whether every device has the answers to the last that it sent."""
    answered = {(one.device_id, one.enrichment, one.fingerprint) for one in found}
    return all(
        (f"d{n}", name, fingerprint(app.by_name[name], {"plate": plate(n, rounds)})) in answered
        for n in range(DEVICES)
        for name in ("owner", "quote")
    )


def out_of_order(found: list[Feedback]) -> dict[tuple[str, str], list[int]]:
    """The versions of each device's answers, where they do not grow."""
    versions: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for one in found:
        versions[one.device_id, one.enrichment].append(one.version)
    assert Counter(len(each) > 1 for each in versions.values())[True] == len(versions), "the test shows no order"
    return {device: each for device, each in versions.items() if each != sorted(set(each))}
