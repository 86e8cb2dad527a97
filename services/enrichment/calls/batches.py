"""Many keys in one call, for APIs that take lists."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

import orjson

from contracts import AbsentError, PermanentCallError, RetryableCallError
from contracts.errors import AUTHOR_ERRORS, CallError
from contracts.model.enrichment import M
from contracts.types.echo import MismatchError, has_echo
from services.enrichment.calls.statuses import MisfitError, RefusedError, head, status_error, validate
from services.enrichment.calls.urls import batch_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts import Batch, Policy
    from services.enrichment.calls.api_client import ApiClient
    from services.enrichment.calls.circuit_breaker import CallLater
    from services.enrichment.calls.retrier import CallRetrier, Effort

    BatchAnswer = tuple[bytes, M] | CallError

log = logging.getLogger(__name__)

TOO_MUCH = frozenset({400, 413, 414, 422})
"""The statuses for a list that an API does not accept, because of one bad key or of its length."""


class BatchedCalls:
    """Collects keys into calls, by the declared batch that they belong to."""

    def __init__(self, client: ApiClient, policy: Policy, later: CallLater) -> None:
        self._client = client
        self._policy = policy
        self._later = later
        self._open: dict[tuple[str, Batch[Any]], _Call[Any]] = {}
        self._in_flight: set[asyncio.Task[None]] = set()

    async def answer(self, enrichment: str, retrier: CallRetrier, batch: Batch[M], key: str) -> tuple[bytes, M]:
        """Return the body and the model of one key, from a call that many keys share. Raises a CallError.

        `retrier` repeats the call as a whole: keys that waited separately would need a call each. An
        attempt requests no key for which no request waits when it begins, as after its partition has moved.
        """
        batch_target(batch, [key])  # one that cannot be sent fails here, alone
        call: _Call[M] | None = self._open.get((enrichment, batch))
        if call is None:
            call = self._open[enrichment, batch] = _Call(batch, retrier)
            self._later(batch.wait.total_seconds(), lambda: self._begin(enrichment, call))
        future = call.future(key)
        if len(call.futures) >= batch.size:
            self._begin(enrichment, call)
        answer = await call.wait(key, future)
        if isinstance(answer, CallError):
            raise answer
        return answer

    def close(self) -> None:
        """Cancel the calls in flight."""
        for task in self._in_flight:
            task.cancel()

    def _begin(self, enrichment: str, call: _Call[Any]) -> None:
        """Make the call with the collected keys, once, if any is left."""
        if self._open.get((enrichment, call.batch)) is not call:
            return
        del self._open[enrichment, call.batch]
        if not call.futures:
            return
        call.task = task = asyncio.get_running_loop().create_task(self._run(enrichment, call))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        task.add_done_callback(call.on_done)

    async def _run(self, enrichment: str, call: _Call[Any]) -> None:
        """Repeat the call until each key has its answer or no attempt is left. All keys share one deadline."""
        try:
            await call.retrier.call(partial(self._once, enrichment, call))
        except CallError as last:
            call.fail(last)

    async def _once(self, enrichment: str, call: _Call[Any], effort: Effort) -> None:
        """Make one attempt for all keys without an answer. Raises a RetryableCallError if some have none after it."""
        call.failed.clear()
        await self._fetch(enrichment, call, call.unanswered, effort)
        if call.failed:
            raise next(iter(call.failed.values()))

    async def _fetch(self, enrichment: str, call: _Call[Any], keys: list[str], effort: Effort) -> None:
        """Fetch these keys; in halves if the API rejects the list, so that one bad key fails alone."""
        read = partial(split_response, call.batch, keys, self._policy)
        answers: Mapping[str, BatchAnswer[Any]]
        try:
            _, answers = await self._client.answer(enrichment, batch_target(call.batch, keys), read, effort)
        except RetryableCallError:
            raise
        except CallError as error:
            if len(keys) > 1 and isinstance(error, RefusedError) and error.status in TOO_MUCH:
                half = len(keys) // 2
                await self._fetch(enrichment, call, keys[:half], effort)
                await self._fetch(enrichment, call, keys[half:], effort)
                return
            answers = dict.fromkeys(keys, error)
        for key, answer in answers.items():
            call.resolve(key, answer)


class _Call(Generic[M]):
    """One call: its keys, and the futures of their answers."""

    def __init__(self, batch: Batch[M], retrier: CallRetrier) -> None:
        self.batch = batch
        self.retrier = retrier
        self.futures: dict[str, asyncio.Future[BatchAnswer[M]]] = {}
        self.failed: dict[str, RetryableCallError] = {}
        """The failures of the keys that the next attempt requests again."""
        self.task: asyncio.Task[None] | None = None
        self._waiting: Counter[str] = Counter()
        """The number of requests that wait for each key."""

    def future(self, key: str) -> asyncio.Future[BatchAnswer[M]]:
        if key not in self.futures:
            self.futures[key] = asyncio.get_running_loop().create_future()
        return self.futures[key]

    async def wait(self, key: str, future: asyncio.Future[BatchAnswer[M]]) -> BatchAnswer[M]:
        """Return the answer of a key. If the last request that waits for it is cancelled, the key is given up."""
        self._waiting[key] += 1
        try:
            return await asyncio.shield(future)  # others may wait for it too
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key] and not future.done():
                self._give_up(key)

    def _give_up(self, key: str) -> None:
        """Request a key no more, and nothing if no other is left."""
        del self.futures[key]
        self.failed.pop(key, None)
        if self.task is not None and not self.unanswered:
            self.task.cancel()

    @property
    def unanswered(self) -> list[str]:
        return [key for key, future in self.futures.items() if not future.done()]

    def resolve(self, key: str, answer: BatchAnswer[M]) -> None:
        if key not in self.futures:  # it was given up during the call
            return
        if isinstance(answer, RetryableCallError):
            self.failed[key] = answer
        else:
            self.futures[key].set_result(answer)

    def fail(self, last: CallError) -> None:
        """Fail the unanswered keys, each with the failure of its own item or else of the call."""
        for key in self.unanswered:
            own = self.failed.get(key)
            failure = PermanentCallError(own.reason, response=own.response) if own else last
            failure.calls = last.calls
            self.futures[key].set_result(failure)

    def on_done(self, task: asyncio.Task[None]) -> None:
        """Resolve the remaining futures, if the task was cancelled or raised an error."""
        left = [future for future in self.futures.values() if not future.done()]
        error = None if task.cancelled() else task.exception()
        for future in left:
            if error is None:
                future.cancel()
            else:
                future.set_exception(error)


def split_response(
    batch: Batch[M], keys: list[str], policy: Policy, found: Any, body: bytes
) -> dict[str, BatchAnswer[M]]:
    """Return the answer of each key. Raises MisfitError unless there is a list or an object by key, MismatchError."""
    items = found if batch.items is None or not isinstance(found, dict) else found.get(batch.items)
    if isinstance(items, list):
        items = {str(item.get(batch.key)): item for item in items if isinstance(item, dict)}
    if not isinstance(items, dict):
        raise MisfitError("the response is no list of items, nor an object by key", response=head(body))
    if has_echo(batch.model) and not items.keys() <= set(keys):
        raise MismatchError("the response answers another request: it has items that the call did not request")
    return {key: _one(batch, policy, key, items.get(key)) for key in keys}


def echo_values(batch: Batch[Any], key: str) -> dict[str, str]:
    """Return the values that an item may repeat: its key, by its name in the call or in the item."""
    return {batch.parameter: key, batch.key: key}


def _one(batch: Batch[M], policy: Policy, key: str, item: Any) -> BatchAnswer[M]:
    if item is None:
        return AbsentError("not in the response")
    status = item.get(batch.status) if batch.status is not None and isinstance(item, dict) else None
    try:
        body = orjson.dumps(item)
    except TypeError:  # it reads deeper than it writes
        return MisfitError("the item is nested too deeply")
    if isinstance(status, int) and status not in policy.success:
        return status_error(status, policy, body=body)
    try:
        return body, validate(batch.model, echo_values(batch, key), item, body)
    except MismatchError:
        raise
    except CallError as failure:
        return failure
    except AUTHOR_ERRORS as error:  # one item must not stop all others
        log.exception("the model of a batch has a bug", extra={"facts": {"model": batch.model.__name__}})
        reason = f"a validator of {batch.model.__name__} raised {type(error).__name__}"
        return PermanentCallError(reason, response=head(body))
