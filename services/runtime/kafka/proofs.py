"""The callers that wait until their consumer has proven that it owns a partition."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    Place = tuple[int, int]
    """A partition and the position of its commit."""
    Request = Callable[[Place, asyncio.Future[bool]], asyncio.Future[None]]
    """Calls a function in the consumer's thread that passes the future to `add`."""

log = logging.getLogger(__name__)

REVOKED = "the partition was revoked"


class Proofs:
    """Passes the answers of the group to those who wait. `wait` and `refused` belong to the event loop."""

    def __init__(self) -> None:
        self._by_place: dict[Place, list[asyncio.Future[bool]]] = {}
        """Those whose commit is unanswered. Used in the consumer's thread only."""
        self._waiting: dict[int, set[asyncio.Future[bool]]] = {}
        """Those who wait, by partition. Used in the event loop only."""
        self._refused: set[int] = set()

    async def wait(self, place: Place, request: Request) -> bool:
        """Request a proof, and return whether the group has accepted it."""
        if place[0] in self._refused:
            return False
        proof: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(place[0], set())
        waiting.add(proof)
        try:
            called = request(place, proof)
            await asyncio.wait((called, proof), return_when=asyncio.FIRST_COMPLETED)
            if called.done():
                called.result()
            return await proof
        finally:
            waiting.discard(proof)

    @contextmanager
    def refused(self, partitions: Collection[int]) -> Iterator[None]:
        """Refuse proofs of partitions: the consumer's thread waits for the work on them, and can prove nothing."""
        self._refused.update(partitions)
        try:
            for proof in [waiting for partition in partitions for waiting in self._waiting.get(partition, ())]:
                _settle(proof, answer=False)
            yield
        finally:
            self._refused.difference_update(partitions)

    def add(self, place: Place, proof: asyncio.Future[bool]) -> None:
        """Add one who waits for the answer to a commit."""
        self._by_place.setdefault(place, []).append(proof)

    def answer(self, place: Place, problem: str | None) -> None:
        """Pass an answer to those who wait for a commit; without a problem it was accepted."""
        proofs = self._by_place.pop(place, [])
        if proofs and problem is not None:
            log.warning("not committed", extra={"facts": {"partition": place[0], "detail": problem}})
        for proof in proofs:
            proof.get_loop().call_soon_threadsafe(partial(_settle, proof, answer=problem is None))

    def forget(self, partitions: Collection[int]) -> None:
        """Refuse those who wait for commits of partitions that were revoked or lost."""
        for place in [(partition, offset) for partition, offset in self._by_place if partition in partitions]:
            self.answer(place, REVOKED)


def _settle(proof: asyncio.Future[bool], *, answer: bool) -> None:
    if not proof.done():
        proof.set_result(answer)
