"""Many keys at once: each owner is asked for its own, and only what gave no answer is asked again."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from services.client.answers import Found
from services.client.calls import TRY_S, Call
from services.client.errors import SteppedBack, Unreadable
from services.client.reading import reader
from services.client.replies import Elsewhere, answer, content
from services.client.targets import state_target
from services.client.transport import Reply
from services.client.tries import TryAgain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import BaseModel

    from services.client.answers import Answer
    from services.client.calls import Calls
    from services.client.discovery import Discovery
    from services.client.highest import Highest
    from services.client.tries import Tries, Try

KEYS_A_REQUEST = 100
AT_ONCE = 8
"""Requests of one batch under way."""


@dataclass
class Batch:
    """Keys of one state to be answered. `fields` as of one key."""

    state: str
    keys: Sequence[str]
    fields: Sequence[str]
    model: type[BaseModel] | None
    answers: dict[str, Answer[Any]] = field(default_factory=dict)

    @property
    def open(self) -> list[str]:
        """The keys without an answer, each once."""
        return [key for key in dict.fromkeys(self.keys) if key not in self.answers]


class Batches:
    """Answers batches."""

    def __init__(self, calls: Calls, discovery: Discovery, tries: Tries, highest: Highest) -> None:
        self._calls = calls
        self._discovery = discovery
        self._tries = tries
        self._highest = highest

    async def answered(self, batch: Batch, deadline_s: float) -> list[Answer[Any]]:
        """The answers in the order of the keys. Raises as for one key, of the first that gave none."""
        room = asyncio.Semaphore(AT_ONCE)

        async def once(one: Try) -> None:
            requests = [
                self._asked(room, batch, url, some)
                for url, keys in self._by_instance(batch).items()
                for some in _pieces(keys)
            ]
            try:
                async with asyncio.timeout(one.left_s):  # also of those that wait for room
                    failures = [each for each in await asyncio.gather(*requests, return_exceptions=True) if each]
            except TimeoutError:
                raise TryAgain(f"{len(batch.open)} keys were not answered in time") from None
            for each in sorted(failures, key=lambda each: isinstance(each, TryAgain)):
                raise each

        if batch.open:
            await self._tries.made(f"{len(batch.keys)} keys of {batch.state}", deadline_s, once)
        return [batch.answers[key] for key in batch.keys]

    def _by_instance(self, batch: Batch) -> dict[str, list[str]]:
        groups = defaultdict(list)
        for key in batch.open:
            groups[self._discovery.candidates((batch.state, key))[0]].append(key)
        return groups

    async def _asked(self, room: asyncio.Semaphore, batch: Batch, url: str, keys: Sequence[str]) -> None:
        body = {"keys": keys, **({"fields": ",".join(batch.fields)} if batch.fields else {})}
        what = f"{len(keys)} keys of {batch.state}"
        call = Call(what, f"{state_target(batch.state)}:batchGet", TRY_S, body=body)
        async with room:
            await self._calls.asked(url, call, TRY_S, lambda reply: self._read(batch, keys, reply))

    def _read(self, batch: Batch, keys: Sequence[str], reply: Reply) -> None:
        """Take the answers; what of them is none is told after all others were taken."""
        told = content(reply, batch.state).get("answers")
        if not isinstance(told, list) or len(told) != len(keys):
            raise Unreadable(reply.url, f"not {len(keys)} answers to {len(keys)} keys")
        left: TryAgain | None = None
        for key, one in zip(keys, told, strict=True):
            try:
                self._take(batch, key, Reply(reply.url, _status(one), one, reply.after_s))
            except TryAgain as failed:
                left = left if isinstance(left, Elsewhere) else failed
        if left:
            raise left

    def _take(self, batch: Batch, key: str, reply: Reply) -> None:
        got = answer(reply, batch.state, key, reader(batch.state, key, batch.model))
        if isinstance(got, Found):
            self._discovery.answered(reply.url, got.instance)
        if not self._highest.admits(got):
            raise TryAgain(f"{reply.url} gave an earlier version of {key} than was shown", kind=SteppedBack)
        batch.answers[key] = got


def _pieces(keys: Sequence[str]) -> Iterable[Sequence[str]]:
    return (keys[at : at + KEYS_A_REQUEST] for at in range(0, len(keys), KEYS_A_REQUEST))


def _status(one: Any) -> int:
    """An answer has no status of its own, a problem has."""
    status = one.get("status") if isinstance(one, dict) else None
    return status if type(status) is int else 200
