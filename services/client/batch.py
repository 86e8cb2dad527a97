"""Reads many keys: one request to each owner, repeated only for the keys that failed."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contracts.api import BATCH
from services.client.answers import Found
from services.client.decoding import reader
from services.client.errors import InvalidResponseError, StaleReadError
from services.client.read_options import time_text
from services.client.request_sender import ATTEMPT_S, ClientRequest
from services.client.responses import MisdirectedError, answer, content
from services.client.retrier import AttemptFailedError
from services.client.transport import InstanceResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pydantic import BaseModel

    from services.client.answers import Answer
    from services.client.discovery import Discovery
    from services.client.high_water_marks import HighWaterMarks
    from services.client.request_sender import RequestSender
    from services.client.retrier import Retrier

KEYS_PER_REQUEST = 100
CONCURRENT_REQUESTS = 8
"""Concurrent requests of one batch."""


@dataclass
class BatchRead:
    """The keys to read from one state, in their newest windows or those that contain a time; their results so far."""

    state: str
    keys: Sequence[str]
    fields: Sequence[str]
    model: type[BaseModel] | None
    at: datetime | None = None
    answers: dict[str, Answer[Any]] = field(default_factory=dict)

    @property
    def open(self) -> list[str]:
        """The distinct keys without a result."""
        return [key for key in dict.fromkeys(self.keys) if key not in self.answers]


class MultiGet:
    """Reads batches."""

    def __init__(
        self, sender: RequestSender, discovery: Discovery, retrier: Retrier, high_water_marks: HighWaterMarks
    ) -> None:
        self._sender = sender
        self._discovery = discovery
        self._retrier = retrier
        self._high_water_marks = high_water_marks

    async def read(self, batch: BatchRead, deadline_s: float) -> list[Answer[Any]]:
        """Return the results in the order of the keys. Raises as for one key, for the first that failed."""
        room = asyncio.Semaphore(CONCURRENT_REQUESTS)

        async def once(left_s: float) -> None:
            requests = [
                self._send_group(room, batch, url, some)
                for url, keys in self._by_instance(batch).items()
                for some in _pieces(keys)
            ]
            try:
                async with asyncio.timeout(left_s):  # also of those that wait for room
                    failures = [each for each in await asyncio.gather(*requests, return_exceptions=True) if each]
            except TimeoutError:
                raise AttemptFailedError(f"{len(batch.open)} keys were not answered in time") from None
            for each in sorted(failures, key=lambda each: isinstance(each, AttemptFailedError)):
                raise each

        if batch.open:
            await self._retrier.run(f"{len(batch.keys)} keys of {batch.state}", deadline_s, once)
        return [batch.answers[key] for key in batch.keys]

    def _by_instance(self, batch: BatchRead) -> dict[str, list[str]]:
        groups = defaultdict(list)
        for key in batch.open:
            groups[self._discovery.candidates((batch.state, key))[0]].append(key)
        return groups

    async def _send_group(self, room: asyncio.Semaphore, batch: BatchRead, url: str, keys: Sequence[str]) -> None:
        parameters = {"fields": ",".join(batch.fields), "at": time_text(batch.at)}
        body = {"keys": keys, **{name: value for name, value in parameters.items() if value}}
        what = f"{len(keys)} keys of {batch.state}"
        call = ClientRequest(what, BATCH.target(name=batch.state), ATTEMPT_S, body=body)
        async with room:
            await self._sender.send_to(url, call, ATTEMPT_S, lambda reply: self._read(batch, keys, reply))

    def _read(self, batch: BatchRead, keys: Sequence[str], reply: InstanceResponse) -> None:
        """Store the results; an invalid one raises after all others are stored."""
        body = content(reply, batch.state).get("answers")
        if not isinstance(body, list) or len(body) != len(keys):
            raise InvalidResponseError(reply.url, f"not {len(keys)} answers to {len(keys)} keys")
        left: AttemptFailedError | None = None
        for key, item in zip(keys, body, strict=True):
            try:
                self._take(batch, key, InstanceResponse(reply.url, _status(item), item, reply.after_s))
            except AttemptFailedError as failed:
                left = left if isinstance(left, MisdirectedError) else failed
        if left:
            raise left

    def _take(self, batch: BatchRead, key: str, reply: InstanceResponse) -> None:
        got = answer(reply, batch.state, key, reader(batch.state, key, batch.model))
        if isinstance(got, Found):
            self._discovery.answered(reply.url, got.instance)
        if not self._high_water_marks.admits(got, by_window=batch.at is not None):
            raise AttemptFailedError(
                f"{reply.url} returned an earlier version of {key} than before", kind=StaleReadError
            )
        batch.answers[key] = got


def _pieces(keys: Sequence[str]) -> Iterable[Sequence[str]]:
    return (keys[at : at + KEYS_PER_REQUEST] for at in range(0, len(keys), KEYS_PER_REQUEST))


def _status(item: Any) -> int:
    """Return the status of one item: only a problem has one."""
    status = item.get("status") if isinstance(item, dict) else None
    return status if type(status) is int else 200
