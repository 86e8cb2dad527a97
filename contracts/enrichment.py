"""An enrichment: an async function with declared needs, the model that it gives, and the policy of its calls."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, Self, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, model_validator

from contracts.columns import is_model, without_none
from contracts.errors import DeclarationError

M = TypeVar("M", bound=BaseModel)
NO_TIME = timedelta(0)


class Policy(BaseModel):
    """How an API is called. Times are durations; a call is one try, a request is all its tries.

    Raises DeclarationError for one by which nothing can be called.
    """

    model_config = ConfigDict(frozen=True)

    timeout: timedelta = timedelta(seconds=5)
    """How long one call may take."""
    attempts: int = 12
    """How many calls a request may make before it is a failure: by default they last a minute or so."""
    backoff: timedelta = timedelta(milliseconds=200)
    """The longest wait before the second call; it doubles with each further call (full jitter)."""
    backoff_most: timedelta = timedelta(seconds=30)
    """The longest wait before any call, Retry-After excepted."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.timeout <= NO_TIME:
            raise _wrong(self, "timeout", "leaves a call no time", "Write timeout=timedelta(seconds=5)")
        if self.attempts < 1:
            raise _wrong(self, "attempts", "allows no call", "Write attempts=1 for a single call")
        if self.backoff < NO_TIME:
            raise _wrong(self, "backoff", "is negative", "Write backoff=timedelta(0) to call again at once")
        if self.backoff_most < self.backoff:
            least = _spelled(self.backoff)
            raise _wrong(self, "backoff_most", f"is less than backoff={least}", f"Write backoff_most={least} or more")
        return self


class Api(Protocol):
    """What an enrichment calls with. The worker gives the real one, the test kit a fake one."""

    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        """GET the path on the enrichment's API and validate the JSON answer as the model.

        `{name}` in the path takes the value of that name, percent-encoded; the other values become the query.
        Raises Absent for 404 and 410, RetryableFailure and PermanentFailure otherwise.
        """
        ...


Function = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Need:
    """One input of an enrichment: a field of the state, or the result in a slot.

    Without an optional one it still runs, but not while that is being asked for.
    """

    name: str
    annotation: Any
    optional: bool


@dataclass(frozen=True)
class Enrichment:
    """A declared enrichment. It writes the slot of its own name."""

    name: str
    needs: tuple[Need, ...]
    result: type[BaseModel]
    api: str
    policy: Policy
    function: Function
    stale_after: timedelta | None

    def __call__(self, api: Api, **inputs: Any) -> Awaitable[BaseModel]:
        """Run the function itself, as a test would."""
        return self.function(api, **inputs)


def enrichment(
    *, api: str, policy: Policy | None = None, stale_after: timedelta | None = None
) -> Callable[[Function], Enrichment]:
    """Declare an async function as an enrichment.

    Its first parameter is the Api; each further parameter names what it needs: a field of the state, or another
    enrichment's slot. `T | None` makes a need optional. Its return annotation is the model of the result.

        @enrichment(api="registry")
        async def aircraft(api: Api, tailnum: str) -> Aircraft:
            return await api.get("/aircraft/{tailnum}", Aircraft, tailnum=tailnum)

    `stale_after` asks again, with the same inputs, when an answer has become that old.
    Raises DeclarationError, saying what to write instead.
    """

    def declare(function: Function) -> Enrichment:
        name = getattr(function, "__name__", "enrichment")
        hints = get_type_hints(function)
        result = hints.pop("return", None)
        parameters = list(inspect.signature(function).parameters)[1:]
        _check(function, name, result, [p for p in parameters if p not in hints])
        _check_staleness(name, stale_after)
        return Enrichment(
            name=name,
            needs=tuple(_need(parameter, hints[parameter]) for parameter in parameters),
            result=result,
            api=api,
            policy=policy or Policy(),
            function=function,
            stale_after=stale_after,
        )

    return declare


def _need(name: str, hint: Any) -> Need:
    annotation, optional = without_none(hint)
    return Need(name, annotation, optional)


def _check(function: Function, name: str, result: Any, bare: list[str]) -> None:
    if not inspect.iscoroutinefunction(function):
        raise DeclarationError(name, "is not async", f"Write `async def {name}(api: Api, …)`")
    if not is_model(result):
        raise DeclarationError(name, "does not say what it gives", "Annotate its return with a pydantic model")
    if bare:
        raise DeclarationError(name, f"{', '.join(bare)} has no type", "Annotate each parameter as the state does")


def _check_staleness(name: str, stale_after: timedelta | None) -> None:
    if stale_after is not None and stale_after <= NO_TIME:
        write = "Write stale_after=timedelta(minutes=30), or leave it out for an answer that stays good"
        raise DeclarationError(
            f"{name}(stale_after={_spelled(stale_after)})", "makes every answer stale at once", write
        )


def _wrong(policy: Policy, field: str, problem: str, write: str) -> DeclarationError:
    return DeclarationError(f"Policy({field}={_spelled(getattr(policy, field))})", problem, write)


def _spelled(value: timedelta | int) -> str:
    return repr(value).removeprefix("datetime.")
