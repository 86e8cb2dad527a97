"""Many keys in one call, for APIs that take lists."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

import orjson

from contracts import Absent
from contracts.enrichment import M
from contracts.errors import CallError
from services.enrichment.calls.statuses import MisfitError, RefusedError, failure, fitted, head
from services.enrichment.calls.tries import Effort
from services.enrichment.calls.urls import listed

if TYPE_CHECKING:
    from contracts import Batch, Policy
    from services.enrichment.calls.access import Access
    from services.enrichment.calls.breaker import Later

    Told = tuple[bytes, M] | CallError

TOO_MUCH = frozenset({400, 413, 414, 422})
"""What an API answers to a list that it does not take: one bad key in it may be to blame, or its length."""


class Batches:
    """The keys that wait for the next call, by the declared batch that they belong to."""

    def __init__(self, access: Access, policy: Policy, later: Later) -> None:
        self._access = access
        self._policy = policy
        self._later = later
        self._open: dict[tuple[str, Batch[Any]], _Call[Any]] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def answer(self, enrichment: str, batch: Batch[M], key: str, effort: Effort) -> tuple[bytes, M]:
        """One key's answer from a call that many share, as it came and as it was read. Raises a CallError."""
        call: _Call[M] | None = self._open.get((enrichment, batch))
        if call is None:
            call = self._open[enrichment, batch] = _Call(batch)
            self._later(batch.wait.total_seconds(), lambda: self._begin(enrichment, call))
        told = call.ask(key)
        if len(call.asked) >= batch.size:
            self._begin(enrichment, call)
        try:
            answer = await asyncio.shield(told)  # others may want to know it too
        finally:
            effort.calls += call.effort.calls
            effort.seconds += call.effort.seconds
        if isinstance(answer, CallError):
            raise answer
        return answer

    def close(self) -> None:
        """Give up the calls under way."""
        for task in self._under_way:
            task.cancel()

    def _begin(self, enrichment: str, call: _Call[Any]) -> None:
        """Make the call with what was gathered, once."""
        if self._open.get((enrichment, call.batch)) is not call:
            return
        del self._open[enrichment, call.batch]
        task = asyncio.get_running_loop().create_task(self._run(enrichment, call, list(call.asked)))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        task.add_done_callback(call.ended)

    async def _run(self, enrichment: str, call: _Call[Any], keys: list[str]) -> None:
        """Ask for these keys; in halves when the API refuses the list, so that one bad key fails alone."""
        effort = Effort()
        try:
            where = listed(call.batch, keys)
            read = partial(divided, call.batch, keys, self._policy)
            answers: dict[str, Told[Any]] = (await self._access.answer(enrichment, where, read, effort))[1]
        except CallError as error:
            if len(keys) > 1 and isinstance(error, RefusedError) and error.status in TOO_MUCH:
                half = len(keys) // 2
                await self._run(enrichment, call, keys[:half])
                await self._run(enrichment, call, keys[half:])
                return
            answers = dict.fromkeys(keys, error)
        finally:
            call.effort.calls += effort.calls
            call.effort.seconds += effort.seconds
        for key, answer in answers.items():
            call.tell(key, answer)


class _Call(Generic[M]):
    """One call in the making: each key, and where its answer is waited for."""

    def __init__(self, batch: Batch[M]) -> None:
        self.batch = batch
        self.asked: dict[str, asyncio.Future[Told[M]]] = {}
        self.effort = Effort()

    def ask(self, key: str) -> asyncio.Future[Told[M]]:
        if key not in self.asked:
            self.asked[key] = asyncio.get_running_loop().create_future()
        return self.asked[key]

    def tell(self, key: str, answer: Told[M]) -> None:
        self.asked[key].set_result(answer)

    def ended(self, task: asyncio.Task[None]) -> None:
        """Leave nobody waiting: when all is well everybody was told."""
        left = [told for told in self.asked.values() if not told.done()]
        error = None if task.cancelled() else task.exception()
        for told in left:
            if error is None:
                told.cancel()
            else:
                told.set_exception(error)


def divided(batch: Batch[M], keys: list[str], policy: Policy, found: Any, body: bytes) -> dict[str, Told[M]]:
    """Each key's own answer. Raises MisfitError for what is no list, nor an object by key."""
    items = found if batch.items is None or not isinstance(found, dict) else found.get(batch.items)
    if isinstance(items, list):
        items = {str(item.get(batch.key)): item for item in items if isinstance(item, dict)}
    if not isinstance(items, dict):
        raise MisfitError("the response is no list of items, nor an object by key", response=head(body))
    return {key: _one(batch, policy, items.get(key)) for key in keys}


def _one(batch: Batch[M], policy: Policy, item: Any) -> Told[M]:
    if item is None:
        return Absent("not in the response")
    status = item.get(batch.status) if batch.status is not None and isinstance(item, dict) else None
    try:
        body = orjson.dumps(item)
    except TypeError:  # it reads deeper than it writes
        return MisfitError("the item is nested too deeply")
    if isinstance(status, int) and status not in policy.success:
        return failure(status, policy, body=body)
    try:
        return body, fitted(batch.model, item, body)
    except MisfitError as misfit:
        return misfit
