"""Runs the application's function for a request, and returns its outcome."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from pydantic import ValidationError, create_model

from contracts import AbsentError, PermanentCallError, RetryableCallError
from contracts.errors import AUTHOR_ERRORS, DeclarationError, message_of
from contracts.records.record import RecordError
from contracts.records.shape import check_own
from services.enrichment.calls.statuses import first_misfit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel

    from contracts import Api, Application, Enrichment
    from contracts.planning.request import Request
    from contracts.wire import Status
    from services.enrichment.calls.retrier import CallRetrier, Effort

log = logging.getLogger(__name__)

FUNCTION_ERRORS: tuple[type[BaseException], ...] = (asyncio.CancelledError, *AUTHOR_ERRORS)
"""The errors of an asynchronous function of the application."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request: a result, or the reason without one, the number of attempts and the last response."""

    status: Status
    result: dict[str, Any] | None = None
    reason: str | None = None
    attempts: int = field(default=0, compare=False)
    response: str | None = field(default=None, compare=False)
    traceparent: str | None = field(default=None, compare=False)
    """The trace context of the request, where the worker makes traces."""


class Enricher(Protocol):
    """Answers requests."""

    async def answer(self, request: Request) -> Outcome:
        """Return the outcome of a request. Raises nothing."""
        ...


class Caller:
    """Runs the application's enrichments.

    `apis` has the API client of each enrichment, and `retriers` its retry rules, by the enrichment's name.
    """

    def __init__(self, application: Application, apis: Mapping[str, Api], retriers: Mapping[str, CallRetrier]) -> None:
        self._prepared = {
            enrichment.name: _Prepared(application, enrichment, apis[enrichment.name], retriers[enrichment.name])
            for enrichment in application.enrichments
        }

    async def answer(self, request: Request) -> Outcome:
        """Return the outcome in every case. A bug in the application's function is a failure too, and logged."""
        try:
            prepared = self._prepared[request.enrichment]
            result = prepared.on_the_wire(await prepared.retrier.call(prepared.once(request.inputs)))
        except AbsentError as absent:
            return Outcome("absence", reason=message_of(absent) or None)
        except (RetryableCallError, PermanentCallError) as failure:
            return Outcome("failure", None, failure.reason, failure.calls, failure.response)
        except FUNCTION_ERRORS as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            log.exception("enrichment has a bug", extra={"facts": {"enrichment": request.enrichment}})
            if isinstance(error, DeclarationError):
                return Outcome("failure", reason=message_of(error))
            return Outcome("failure", reason=f"the function raised {type(error).__name__}")  # its message may have data
        return Outcome("result", result=result)


def _is_cancelled() -> bool:
    """Return whether the worker cancels this request: the function may have cancelled and awaited a task of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _Prepared:
    """An enrichment with everything that does not depend on the request."""

    def __init__(self, application: Application, one: Enrichment, api: Api, retrier: CallRetrier) -> None:
        self._one = one
        self.retrier = retrier
        self._api = api
        self._largest = application.largest_record
        self._shape = create_model("Results", **{one.name: (one.result | None, None)})  # type: ignore[call-overload]

    def once(self, inputs: dict[str, Any]) -> Callable[[Effort], Awaitable[BaseModel]]:
        """Return a run of the function on inputs in their wire form. Raises PermanentCallError if they do not fit."""
        return partial(self._once, self._typed(inputs))

    async def _once(self, typed: dict[str, Any], effort: Effort) -> BaseModel:
        """Run the function once. A RetryableCallError of its own repeats it.

        A function that catches the cancellation of its request by the worker ends as one that does not.
        """
        effort.calls += 1
        try:
            result: BaseModel = await self._one.function(self._api, **typed)
        finally:
            if _is_cancelled():
                raise asyncio.CancelledError
        return result

    def _typed(self, inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._one.typed(inputs)
        except ValidationError as error:
            raise PermanentCallError(
                f"the state does not fit what the function needs: {first_misfit(error)}"
            ) from error

    def on_the_wire(self, result: BaseModel) -> dict[str, Any]:
        """A result as JSON, without nulls. Raises PermanentCallError for one that the job would refuse."""
        wire = self._one.written(self._one.checked(result))
        try:
            record = orjson.dumps({self._one.name: wire})
        except TypeError as error:
            raise PermanentCallError(f"the result cannot be written as JSON ({error})") from error
        if len(record) > self._largest:  # the feedback reports it with its size
            return wire
        if orjson.loads(record)[self._one.name] != wire:
            raise PermanentCallError("the result holds a number that JSON does not have")
        try:
            check_own(self._shape, record)
        except RecordError as refused:
            why = f"the job would refuse the result ({refused}): a time needs an offset, a number must be finite"
            raise PermanentCallError(why) from refused
        return wire
