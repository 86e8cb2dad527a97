"""A request from its first call to its outcome: the application's function, with retries."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import TypeAdapter, ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from contracts import Absent, PermanentFailure, RetryableFailure
from services.enrichment.calls.api import first_misfit
from services.enrichment.calls.backoff import pause

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel

    from contracts import Api, Application, Enrichment, Policy
    from contracts.plan import Request
    from contracts.wire import Status

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """How a request ended: a result, or the reason why there is none."""

    status: Status
    result: dict[str, Any] | None = None
    reason: str | None = None


class Caller:
    """Runs the application's enrichments. `apis` holds what each enrichment calls with, by enrichment's name."""

    def __init__(
        self,
        application: Application,
        apis: Mapping[str, Api],
        *,
        sleep: Callable[[float], Awaitable[None]],
        draw: Callable[[float, float], float],
    ) -> None:
        self._prepared = {
            one.name: _Prepared(one, apis[one.name], _retrying(application.apis[one.api], sleep, draw))
            for one in application.enrichments
        }

    async def answer(self, request: Request) -> Outcome:
        """The outcome, whatever happens. A bug in the application's function is a failure too, and logged."""
        prepared = self._prepared[request.enrichment]
        try:
            result = await prepared.run(request.inputs)
        except Absent as absent:
            return Outcome("absence", reason=str(absent) or None)
        except (RetryableFailure, PermanentFailure) as failure:
            return Outcome("failure", reason=failure.reason)
        except Exception as error:
            log.exception("enrichment has a bug", extra={"facts": {"enrichment": request.enrichment}})
            return Outcome("failure", reason=f"the function raised {type(error).__name__}")
        return Outcome("result", result=result)


class _Prepared:
    """An enrichment with all that does not depend on the request."""

    def __init__(self, one: Enrichment, api: Api, retrying: AsyncRetrying) -> None:
        self._one = one
        self._retrying = retrying
        self._api = api
        self._types: dict[str, TypeAdapter[Any]] = {
            need.name: TypeAdapter(need.annotation | None if need.optional else need.annotation) for need in one.needs
        }

    async def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The result as it goes on the wire."""
        result: BaseModel = await self._retrying(self._once, self._typed(inputs))
        return on_the_wire(self._one, result)

    async def _once(self, typed: dict[str, Any]) -> BaseModel:
        """One run of the function. All of it is tried again: a RetryableFailure may be the function's own."""
        result: BaseModel = await self._one.function(self._api, **typed)
        return result

    def _typed(self, inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            return {name: kind.validate_python(inputs[name]) for name, kind in self._types.items()}
        except ValidationError as error:
            raise PermanentFailure(f"the state does not fit what the function needs: {first_misfit(error)}") from error


def on_the_wire(one: Enrichment, result: BaseModel) -> dict[str, Any]:
    """A result as JSON, without nulls. Raises PermanentFailure for what the wire does not carry."""
    if not isinstance(result, one.result):
        raise PermanentFailure(f"the function gave {type(result).__name__}, not {one.result.__name__} as declared")
    wire = result.model_dump(mode="json", exclude_none=True)
    if orjson.loads(orjson.dumps(wire)) != wire:
        raise PermanentFailure("the result holds a number that JSON does not have")
    return wire


def _retrying(
    policy: Policy,
    sleep: Callable[[float], Awaitable[None]],
    draw: Callable[[float, float], float],
) -> AsyncRetrying:
    def wait(state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        asked = failure.retry_after if isinstance(failure, RetryableFailure) else None
        return pause(policy, state.attempt_number, asked, draw=draw)

    return AsyncRetrying(
        stop=stop_after_attempt(policy.attempts),
        retry=retry_if_exception_type(RetryableFailure),
        wait=wait,
        sleep=sleep,
        reraise=True,
    )
