"""The reader of a key, which asks the instances in turn, and the answers that it got."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from services.client.errors import AttemptFailedError, NotArrivedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random

    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.job import Job
    from tests.simulation.instances.reads import KeyState, Read, Reads
    from tests.simulation.instances.requests import Requests
    from tests.simulation.instances.watchers import Marked, Watched

ANSWER_S = 1.0
"""How long a reader waits for an answer, beyond the wait of its request."""
PAUSES_S = (0.05, 0.5, 1.0, 2.0)
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
    window: int | None = None
    """The start of the window that was read; None of the newest one."""


class Sent(NamedTuple):
    """The number and the time of a request."""

    number: int
    at: float


class Answers:
    """The answers to all readers."""

    def __init__(self, job: Job) -> None:
        self.list: list[Answered] = []
        self.of_windows: list[Answered] = []
        """Those of single windows."""
        self.watched: list[Watched] = []
        self.marked: list[Marked] = []
        self._job = job
        self._numbers = count()

    def sent(self) -> Sent:
        """Return the number and the time of a request that is sent now."""
        return Sent(next(self._numbers), asyncio.get_running_loop().time())

    def add(self, source: str, sent: Sent, states: Iterable[KeyState]) -> None:
        """Add what an answer that arrives now says of keys."""
        number, at = next(self._numbers), asyncio.get_running_loop().time()
        for key, order, expired, live_only, without, is_open, window in states:
            answer = Answered(
                key,
                source,
                *sent,
                number,
                at,
                order,
                expired,
                live_only,
                without,
                is_open,
                self.written(key),
                self.newest,
                window,
            )
            (self.list if window is None else self.of_windows).append(answer)

    @property
    def newest(self) -> int:
        """The start of the newest window of all keys."""
        return self._job.newest

    def written(self, key: str) -> int:
        """Return how many states the topic has given the key."""
        return len(self._job.histories[key].states)

    def all_written(self) -> dict[str, int]:
        """Return how many states the topic has given each key."""
        return {key: len(history.states) for key, history in self._job.histories.items()}

    def starts(self, key: str) -> list[int]:
        """Return the starts of all windows that the topic has ever given the key, in their order."""
        return sorted(self._job.histories[key].starts)


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
        sent = self._answers.sent()
        reply = await self._requests.send(name, read.request)
        if reply is None:
            return False
        try:
            states = read.states(name, reply)
        except (AttemptFailedError, NotArrivedError):
            return False
        for state in states:
            if state.key == self._key and state.without is None:
                self._newest = state.order
        self._answers.add(name, sent, states)
        return True
