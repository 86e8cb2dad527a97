"""The reader of a key, which asks the instances in turn, and the answers that it got."""

from __future__ import annotations

import asyncio
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from services.query.lookup.decision import FoundEntry
from services.query.lookup.version_reference import VersionReference
from tests.simulation.instances.requests import ANSWER_S, Request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from services.query.lookup.problems import Problem
    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.job import Job
    from tests.simulation.instances.requests import Outcome, Requests
    from tests.simulation.instances.watchers import Watched

PAUSES_S = (0.05, 0.5, 1.0)
"""Between two reads of a key."""


class Answered(NamedTuple):
    """An answer: the order of the key's entry, None if it has none. The numbers order all requests and answers."""

    key: str
    instance: str
    sent: int
    sent_at: float
    number: int
    at: float
    order: EntryOrder | None
    expired: EntryOrder | None
    """The last version of a window that has expired."""
    written: int
    """The number of states that the topic had given the key by then."""
    newest: int
    """The start of the newest window of all keys then."""


class Answers:
    """The answers to all readers."""

    def __init__(self, job: Job) -> None:
        self.list: list[Answered] = []
        self.watched: list[Watched] = []
        self._job = job
        self._numbers = count()

    def next_number(self) -> int:
        """Return the number of the next request or answer."""
        return next(self._numbers)

    def add(self, answer: Answered) -> None:
        """Add an answer."""
        self.list.append(answer)

    @property
    def newest(self) -> int:
        """The start of the newest window of all keys."""
        return self._job.newest

    def written(self, key: str) -> int:
        """Return how many states the topic has given the key."""
        return len(self._job.histories[key].states)


class KeyReader:
    """Reads a key again and again: half of the times from the version on that it has."""

    def __init__(self, key: str, requests: Requests, answers: Answers, random: Random) -> None:
        self._key = key
        self._requests = requests
        self._answers = answers
        self._random = random
        self._newest: EntryOrder | None = None

    async def run(self) -> None:
        """Read until cancelled."""
        names, turn = list(self._requests.instances), 0
        while True:
            turn += 1
            await self._read([names[(turn + more) % len(names)] for more in range(len(names))])
            await asyncio.sleep(self._random.uniform(0.01, self._random.choice(PAUSES_S)))

    async def _read(self, names: Sequence[str]) -> None:
        """Ask these instances until one answers. Later answers of those that were too slow count too."""
        at_least = VersionReference(*self._newest) if self._newest and self._random.random() < 0.5 else None
        for name in names:
            asking = asyncio.ensure_future(self._ask(name, Request(self._key, at_least)))
            done, _ = await asyncio.wait([asking], timeout=ANSWER_S)
            if done and asking.result():
                return

    async def _ask(self, name: str, request: Request) -> bool:
        sent, sent_at = self._answers.next_number(), asyncio.get_running_loop().time()
        found = await self._requests.send(name, request)
        if found is None or not _is_answer(found):
            return False
        order, expired = (found.entry.order, None) if isinstance(found, FoundEntry) else (None, _expired(found))
        self._newest = order
        self._answers.add(
            Answered(
                self._key,
                name,
                sent,
                sent_at,
                self._answers.next_number(),
                asyncio.get_running_loop().time(),
                order,
                expired,
                self._answers.written(self._key),
                self._answers.newest,
            )
        )
        return True


def _is_answer(found: Outcome) -> bool:
    return isinstance(found, FoundEntry) or found.kind in {"never_seen", "expired"}


def _expired(problem: Problem) -> EntryOrder | None:
    if problem.kind != "expired":
        return None
    facts = problem.facts
    start = datetime.fromisoformat(facts["window_start"])
    return round(start.timestamp() * 1000), facts["epoch"], facts["version"]
