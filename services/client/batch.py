"""Reads many keys, in requests of some of them, repeated only for the keys that failed.

A service may accept smaller requests than others: one that it refuses as too large is sent in halves.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from contracts.api.reads import BATCH
from services.client.answers import reader
from services.client.errors import AttemptFailedError, InvalidResponseError, RejectedError, StaleReadError
from services.client.read_options import parameter
from services.client.request_sender import ATTEMPT_S, ClientRequest
from services.client.responses import answer, content

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from services.client.answers import Answer
    from services.client.high_water_marks import HighWaterMarks
    from services.client.request_sender import RequestSender
    from services.client.transport import InstanceResponse

KEYS_PER_REQUEST = 100
CONCURRENT_REQUESTS = 8
"""Concurrent requests of one batch."""


@dataclass
class BatchRead:
    """The keys to read from one state, in their newest windows or those that contain a time; their results so far."""

    state: str
    keys: Sequence[str]
    fields: Sequence[str]
    model: type[Any] | None
    at: datetime | None
    high_water_marks: HighWaterMarks
    answers: dict[str, Answer[Any]] = field(default_factory=dict)
    keys_per_request: int = KEYS_PER_REQUEST
    """The largest number of keys that no service has refused as too many."""

    async def run(self, sender: RequestSender, deadline_s: float) -> list[Answer[Any]]:
        """Return the results in the order of the keys. Raises as for one key, for the first that failed."""
        room = asyncio.Semaphore(CONCURRENT_REQUESTS)

        async def send(url: str, keys: Sequence[str]) -> None:
            try:
                async with room:
                    if len(keys) <= self.keys_per_request:  # no other part was refused while this one waited
                        await sender.send_to(url, self._request(keys), ATTEMPT_S, lambda reply: self._read(keys, reply))
                        return
            except RejectedError as error:
                if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or len(keys) == 1:
                    raise
                self.keys_per_request = min(self.keys_per_request, len(keys) // 2)
            await send_all(url, keys)

        async def send_all(url: str, keys: Sequence[str]) -> None:
            size = self.keys_per_request
            requests = [send(url, keys[start : start + size]) for start in range(0, len(keys), size)]
            results = await asyncio.gather(*requests, return_exceptions=True)
            for failure in sorted(filter(None, results), key=lambda each: isinstance(each, AttemptFailedError)):
                raise failure

        async def once(url: str, left_s: float) -> None:
            open_keys = [key for key in dict.fromkeys(self.keys) if key not in self.answers]
            try:
                async with asyncio.timeout(left_s):  # also of those that wait for room
                    await send_all(url, open_keys)
            except TimeoutError:
                raise AttemptFailedError(f"{len(open_keys)} keys were not answered in time") from None

        if self.keys:
            await sender.retry(f"{len(self.keys)} keys of {self.state}", deadline_s, once)
        return [self.answers[key] for key in self.keys]

    def _request(self, keys: Sequence[str]) -> ClientRequest:
        parameters = {"keys": keys, "fields": parameter(self.fields), "at": parameter(self.at)}
        body = {name: value for name, value in parameters.items() if value}
        return ClientRequest(f"{len(keys)} keys of {self.state}", BATCH.target(name=self.state), ATTEMPT_S, body=body)

    def _read(self, keys: Sequence[str], reply: InstanceResponse) -> None:
        """Store the results. The error of one that failed is raised after all others are stored."""
        body = content(reply, self.state).get("answers")
        if not isinstance(body, list) or len(body) != len(keys):
            raise InvalidResponseError(reply.url, f"not {len(keys)} answers to {len(keys)} keys")
        failure: AttemptFailedError | None = None
        for key, member in zip(keys, body, strict=True):
            try:
                self._store(key, reply._replace(status=_status(member), body=member))
            except AttemptFailedError as failed:
                failure = failed
        if failure:
            raise failure

    def _store(self, key: str, reply: InstanceResponse) -> None:
        got = answer(reply, self.state, key, reader(self.state, key, self.model))
        if not self.high_water_marks.admits(got, by_window=self.at is not None):
            raise AttemptFailedError(
                f"{reply.url} returned an earlier version of {key} than before", kind=StaleReadError
            )
        self.answers[key] = got


def _status(member: Any) -> int:
    """Return the status of one result: only a problem has one."""
    status = member.get("status") if isinstance(member, dict) else None
    return status if type(status) is int else 200
