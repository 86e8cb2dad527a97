"""Many keys in one call, for APIs that take lists."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

import orjson

from contracts import AbsentError, PermanentCallError, RetryableCallError
from contracts.errors import CallError
from contracts.model.enrichment import M
from contracts.types.echo import MismatchError, has_echo
from services.enrichment.calls.statuses import MisfitError, RefusedError, failure, fitted, head
from services.enrichment.calls.urls import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts import Batch, Policy
    from services.enrichment.calls.access import Access
    from services.enrichment.calls.breaker import Later
    from services.enrichment.calls.tries import Effort, Tries

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

    async def answer(self, enrichment: str, tries: Tries, batch: Batch[M], key: str) -> tuple[bytes, M]:
        """One key's answer from a call that many share, as it came and as it was read. Raises a CallError.

        The call is tried again as one, by `tries`: keys that each waited for themselves would be a call each.
        """
        listed(batch, [key])  # one that cannot be sent fails here, alone
        call: _Call[M] | None = self._open.get((enrichment, batch))
        if call is None:
            call = self._open[enrichment, batch] = _Call(batch, tries)
            self._later(batch.wait.total_seconds(), lambda: self._begin(enrichment, call))
        told = call.ask(key)
        if len(call.asked) >= batch.size:
            self._begin(enrichment, call)
        answer = await asyncio.shield(told)  # others may want to know it too
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
        task = asyncio.get_running_loop().create_task(self._run(enrichment, call))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        task.add_done_callback(call.ended)

    async def _run(self, enrichment: str, call: _Call[Any]) -> None:
        """Ask until each key has its answer, or nothing more is to be tried: there is one deadline for all."""
        try:
            await call.tries.made(partial(self._once, enrichment, call))
        except CallError as last:
            call.fail(last)

    async def _once(self, enrichment: str, call: _Call[Any], effort: Effort) -> None:
        """One try, of all keys that have no answer yet. Raises a RetryableCallError when some have none after it."""
        call.failed.clear()
        await self._ask(enrichment, call, call.unanswered, effort)
        if call.failed:
            raise next(iter(call.failed.values()))

    async def _ask(self, enrichment: str, call: _Call[Any], keys: list[str], effort: Effort) -> None:
        """Ask for these keys; in halves when the API refuses the list, so that one bad key fails alone."""
        read = partial(divided, call.batch, keys, self._policy)
        answers: Mapping[str, Told[Any]]
        try:
            _, answers = await self._access.answer(enrichment, listed(call.batch, keys), read, effort)
        except RetryableCallError:
            raise
        except CallError as error:
            if len(keys) > 1 and isinstance(error, RefusedError) and error.status in TOO_MUCH:
                half = len(keys) // 2
                await self._ask(enrichment, call, keys[:half], effort)
                await self._ask(enrichment, call, keys[half:], effort)
                return
            answers = dict.fromkeys(keys, error)
        for key, answer in answers.items():
            call.tell(key, answer)


class _Call(Generic[M]):
    """One call in the making: each key, and where its answer is waited for."""

    def __init__(self, batch: Batch[M], tries: Tries) -> None:
        self.batch = batch
        self.tries = tries
        self.asked: dict[str, asyncio.Future[Told[M]]] = {}
        self.failed: dict[str, RetryableCallError] = {}
        """What was wrong with the items of those that are to be asked for again."""

    def ask(self, key: str) -> asyncio.Future[Told[M]]:
        if key not in self.asked:
            self.asked[key] = asyncio.get_running_loop().create_future()
        return self.asked[key]

    @property
    def unanswered(self) -> list[str]:
        return [key for key, told in self.asked.items() if not told.done()]

    def tell(self, key: str, answer: Told[M]) -> None:
        if isinstance(answer, RetryableCallError):
            self.failed[key] = answer
        else:
            self.asked[key].set_result(answer)

    def fail(self, last: CallError) -> None:
        """End what is not answered: by what was wrong with its own item, or with the whole."""
        for key in self.unanswered:
            own = self.failed.get(key)
            failure = PermanentCallError(own.reason, response=own.response) if own else last
            failure.calls = last.calls
            self.asked[key].set_result(failure)

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
    """Each key's own answer. Raises MisfitError for what is no list, nor an object by key, and MismatchError."""
    items = found if batch.items is None or not isinstance(found, dict) else found.get(batch.items)
    if isinstance(items, list):
        items = {str(item.get(batch.key)): item for item in items if isinstance(item, dict)}
    if not isinstance(items, dict):
        raise MisfitError("the response is no list of items, nor an object by key", response=head(body))
    if has_echo(batch.model) and not items.keys() <= set(keys):
        raise MismatchError("the response answers another request: it has items that the call did not request")
    return {key: _one(batch, policy, key, items.get(key)) for key in keys}


def echoed(batch: Batch[Any], key: str) -> dict[str, str]:
    """What an item may repeat of its call: its key, by the name that it has in the call, or in the item."""
    return {batch.parameter: key, batch.key: key}


def _one(batch: Batch[M], policy: Policy, key: str, item: Any) -> Told[M]:
    if item is None:
        return AbsentError("not in the response")
    status = item.get(batch.status) if batch.status is not None and isinstance(item, dict) else None
    try:
        body = orjson.dumps(item)
    except TypeError:  # it reads deeper than it writes
        return MisfitError("the item is nested too deeply")
    if isinstance(status, int) and status not in policy.success:
        return failure(status, policy, body=body)
    try:
        return body, fitted(batch.model, echoed(batch, key), item, body)
    except MisfitError as misfit:
        return misfit
