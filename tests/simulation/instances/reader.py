"""The reader of a key, which asks the instances in turn, and the answers that it got."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from services.client.errors import AttemptFailedError, NotArrivedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.job import Job
    from tests.simulation.instances.reads import Read, Reads
    from tests.simulation.instances.requests import Requests
    from tests.simulation.instances.watchers import Watched

ANSWER_S = 1.0
"""How long a reader waits for an answer, beyond the wait of its request."""
PAUSES_S = (0.05, 0.5, 1.0)
"""Between two reads of a key."""


class Answered(NamedTuple):
    """An answer about a key. The numbers order all requests and answers."""

    key: str
    instance: str
    sent: int
    sent_at: float
    number: int
    at: float
    order: EntryOrder | None
    """The order of the key's entry, None if it has none."""
    expired: EntryOrder | None
    """The last version of a window that has expired."""
    live_only: bool
    """Whether a window that has expired is not answered."""
    without: str | None
    """The value by which the key was not found."""
    is_open: bool | None
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
    """Reads a key again and again, and other keys with it."""

    def __init__(self, key: str, reads: Reads, requests: Requests, answers: Answers, random: Random) -> None:
        self._key = key
        self._reads = reads
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
        read = self._reads.next(self._key, self._newest)
        for name in names:
            asking = asyncio.ensure_future(self._ask(name, read))
            done, _ = await asyncio.wait([asking], timeout=ANSWER_S + read.request.wait_s)
            if done and asking.result():
                return

    async def _ask(self, name: str, read: Read) -> bool:
        sent, sent_at = self._answers.next_number(), asyncio.get_running_loop().time()
        reply = await self._requests.send(name, read.request)
        if reply is None:
            return False
        try:
            states = read.states(name, reply)
        except (AttemptFailedError, NotArrivedError):
            return False
        number, at = self._answers.next_number(), asyncio.get_running_loop().time()
        for state in states:
            if state.key == self._key and state.without is None:
                self._newest = state.order
            written, newest = self._answers.written(state.key), self._answers.newest
            self._answers.add(
                Answered(
                    state.key,
                    name,
                    sent,
                    sent_at,
                    number,
                    at,
                    state.order,
                    state.expired,
                    state.live_only,
                    state.without,
                    state.is_open,
                    written,
                    newest,
                )
            )
        return True
