"""Upgrades the query service under load: `python -m tests.compatibility.upgrade_query CHECKOUT FOLDER [SEED…]`.

The checkout is of the version before. Three of its instances answer clients of both versions, readers and watchers over
HTTP. Each instance is replaced by the present one, in the order and by the ways that the seed gives: after SIGTERM,
after a kill -9, by one beside it. Then one is replaced by the version before again. No answer may be older than one
before, no key may be without an answer for longer than docs/how-to/run-query-instances.md allows, and watchers must
receive what was written last. The folder has the logs. It exits with 1 if a promise is broken.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, ClientTimeout

from tests.compatibility.queried import CARS, HOURS, LIVE, Load
from tests.compatibility.query_fleet import QueryFleet, SnapshotProducer
from tests.compatibility.query_watchers import PASSING, EventsWatch, PageReader, SocketWatch, Watch, listings
from tests.compatibility.upgrade_loop import HERE, IS_KILLED, ROOT, RUNS_BESIDE, STOPS, Row, report, upgrade_seeds
from tests.services.query.faults.checker import Checker
from tests.services.tools.broker.embedded import EmbeddedBroker, free_port_pair

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.compatibility.query_watchers import Place

WAYS = (STOPS, IS_KILLED, RUNS_BESIDE)
BOUNDS = {STOPS: 0.5, RUNS_BESIDE: 0.5, IS_KILLED: 4.75}
"""The seconds for which no instance answers for some keys, as docs/how-to/run-query-instances.md has them."""
LONGEST_S = BOUNDS[IS_KILLED] + 1.0
"""The seconds of one read: the timeout of a request before the next instance is asked is a second."""
SLACK_S = 2.0
"""For a busy machine."""
BETWEEN_S, SETTLED_S, FINAL_S = 8, 60, 60
PAUSE_S = 0.2


@dataclass
class Clients:
    """All clients of the instances."""

    load: Load
    places: list[Place]
    watches: list[Watch] = field(init=False)
    pages: PageReader = field(init=False)
    checkers: list[Checker] = field(init=False)

    def __post_init__(self) -> None:
        self.watches = [SocketWatch(place) for place in self.places]
        self.watches += [EventsWatch(place, state, f"{state}/00") for place in self.places for state in (CARS, HOURS)]
        self.pages = PageReader(self.places, listings(self.load))
        keys = {state: [f"{state}/{number:02}" for number in range(LIVE)] for state in (CARS, HOURS)}
        self.checkers = [Checker(self.places, keys[state], state, PAUSE_S) for state in keys]

    def mark(self) -> None:
        """Restart the measurement of the time without an answer."""
        for checker in self.checkers:
            checker.mark()

    def longest_outage(self) -> float:
        """Return the longest time without an answer for a key since `mark`, in seconds."""
        return max(checker.longest_outage() for checker in self.checkers)

    def watched(self) -> int:
        """Return how many last snapshots all watchers have received."""
        return sum(watch.has_seen(self.load) for watch in self.watches)

    def to_watch(self) -> int:
        """Return how many there are."""
        return sum(watch.to_see(self.load) for watch in self.watches)

    def judge(self) -> list[Row]:
        """Return a row for each promise."""
        checks = [self.pages.check, *(watch.check for watch in self.watches)]
        older = [line for check in checks for line in check.older]
        older += [line for checker in self.checkers for line in checker.regressions]
        failed = [line for check in checks for line in check.failed]
        problems = [problem for checker in self.checkers for problem in checker.problems]
        failed += [f"{name} answers {kind}" for name, kind in problems if not _is_passing(name, kind)]
        for line in (*older, *failed):
            report(line)
        reads = sum(sum(checker.answers_of()) for checker in self.checkers)
        return [
            Row("reads over HTTP, at least", 1_000, reads, reads > 1_000),
            Row("last snapshots at watchers", self.to_watch(), self.watched(), self.watched() == self.to_watch()),
            Row("listings read, at least", 20, self.pages.listings, self.pages.listings > 20),
            Row(
                "seconds for a page, at most",
                LONGEST_S,
                self.pages.longest_s,
                self.pages.longest_s < LONGEST_S + SLACK_S,
            ),
            Row("older answers", 0, len(older), not older),
            Row("answers that are not expected", 0, len(failed), not failed),
        ]


class PythonClient:
    """A process with the Python client of a version."""

    def __init__(self, checkout: Path, name: str, folder: Path, urls: list[str], running: ExitStack) -> None:
        self.name, self._facts = name, folder / f"client-{name}.json"
        log = running.enter_context((folder / f"client-{name}.log").open("ab"))
        environment = os.environ | {"PYTHONPATH": f"{HERE}:{checkout}"}
        command = [sys.executable, "-m", "queried_client", str(self._facts), *urls]
        self._process = subprocess.Popen(
            command, cwd=checkout, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log
        )
        running.callback(self._process.kill)

    def judge(self, load: Load) -> list[Row]:
        """End it, and return a row for each promise."""
        self._process.communicate(timeout=SETTLED_S)
        facts = json.loads(self._facts.read_text(encoding="utf-8"))
        for line in (*facts["older"], *facts["failed"]):
            report(f"client, {self.name}: {line}")
        watched = sum(_is_watched(facts["watched"], *entry) for entry in load.windows.items())
        reads, longest = sum(facts["reads"].values()), facts["longest_s"]
        return [
            Row(f"reads by the {self.name} client, at least", 500, reads, reads > 500),
            Row(f"the {self.name} client's older answers", 0, len(facts["older"]), not facts["older"]),
            Row("its failed reads", 0, len(facts["failed"]), not facts["failed"]),
            Row("seconds for one of its reads, at most", LONGEST_S, longest, longest < LONGEST_S + SLACK_S),
            Row("last snapshots at its watch", len(load.windows), watched, watched == len(load.windows)),
        ]


def _is_passing(name: str, kind: str) -> bool:
    """Return whether clients may get the problem. Releases before 0.3.0 pass 421 of an instance on, in batches."""
    return kind in PASSING or (kind == "elsewhere" and name.endswith("-old"))


def _is_watched(watched: Mapping[str, list[int]], window: tuple[str, ...], written: Any) -> bool:
    return watched.get(" ".join(window)) == [written.epoch, written.version]


def upgrade(before: Path, folder: Path, seed: int) -> list[Row]:
    """Upgrade a service, and return what became of it."""
    with ExitStack() as running:
        return asyncio.run(_upgrade(before, folder, seed, running))


async def _upgrade(before: Path, folder: Path, seed: int, running: ExitStack) -> list[Row]:
    broker = EmbeddedBroker(folder, free_port_pair())
    running.callback(broker.stop)
    broker.start()
    load, fleet = Load(seed), QueryFleet(before, folder, broker.bootstrap, running)
    fleet.prepare()
    producer = SnapshotProducer(broker.bootstrap)
    for written in load.first():
        producer.write(written)
    producer.flush()
    for place in fleet.places:
        fleet.start(place.instance, before)
    for place in fleet.places:
        fleet.take_place(place, place.instance, before)
    clients = Clients(load, fleet.places)
    urls = [place.url for place in fleet.places]
    python = [PythonClient(at, name, folder, urls, running) for at, name in ((before, "old"), (ROOT, "new"))]
    is_over = asyncio.Event()
    async with (
        ClientSession(timeout=ClientTimeout(total=None, sock_connect=1.0)) as session,
        asyncio.TaskGroup() as tasks,
    ):
        runs = (clients.pages.run(session), *(watch.run(session) for watch in clients.watches))
        watches = [tasks.create_task(run) for run in runs]
        async with clients.checkers[0], clients.checkers[1]:
            writing = tasks.create_task(producer.run(load, is_over))
            rows = await replace_all(fleet, clients, random.Random(seed))
            is_over.set()
            await writing
            await final(clients)
        for watch in watches:
            watch.cancel()
    rows += clients.judge()
    for client in python:
        rows += await asyncio.to_thread(client.judge, load)
    return rows


async def replace_all(fleet: QueryFleet, clients: Clients, chance: random.Random) -> list[Row]:
    """Replace all instances, and one of them back, in the order and by the ways that the seed gives."""
    steps = list(zip(chance.sample(fleet.places, 3), [ROOT] * 3, chance.sample(WAYS, 3), strict=True))
    steps.append((chance.choice(fleet.places), fleet.before, STOPS))
    clients.mark()
    await asyncio.sleep(BETWEEN_S)
    usual = clients.longest_outage()
    rows = [Row("nothing is replaced: seconds without an answer", 0, usual, usual < SLACK_S)]
    for place, checkout, way in steps:
        await asyncio.sleep(BETWEEN_S)
        clients.load.settled = {*clients.load.windows}
        await asyncio.sleep(1)
        clients.mark()
        await asyncio.to_thread(fleet.replace, place, checkout, way)
        await asyncio.sleep(BETWEEN_S)
        outage, is_right = clients.longest_outage(), clients.longest_outage() < usual + BOUNDS[way] + SLACK_S
        rows.append(Row(f"the one before {place.name} {way}: seconds without an answer", BOUNDS[way], outage, is_right))
    empty = len(WAYS)  # two instances that are upgraded in place, and the one that is rolled back
    found = fleet.empty_starts()
    return [*rows, Row("stores of another version that start empty", 2 * empty, found, found == 2 * empty)]


async def final(clients: Clients) -> None:
    """Wait until all watchers have what was written last, or no longer."""
    for _ in range(FINAL_S):
        if clients.watched() == clients.to_watch():
            break
        await asyncio.sleep(1)
    await asyncio.sleep(BETWEEN_S)


if __name__ == "__main__":
    sys.exit(upgrade_seeds(upgrade))
