"""An enrichment: an async function with declared needs, and the model that it gives."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar, get_type_hints

from pydantic import BaseModel

from contracts.columns import is_model, without_none
from contracts.condition import Condition, Predicate, condition
from contracts.errors import DeclarationError
from contracts.policy import NO_TIME, spelled

M = TypeVar("M", bound=BaseModel)


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

    @property
    def kind(self) -> Any:
        """The type of the function's parameter."""
        return self.annotation | None if self.optional else self.annotation


@dataclass(frozen=True)
class Enrichment:
    """A declared enrichment. It writes the slot of its own name."""

    name: str
    needs: tuple[Need, ...]
    result: type[BaseModel]
    api: str
    function: Function
    stale_after: timedelta | None
    when: Condition | None = None

    def __call__(self, api: Api, **inputs: Any) -> Awaitable[BaseModel]:
        """Run the function itself, as a test would."""
        return self.function(api, **inputs)


def enrichment(
    *, api: str, stale_after: timedelta | None = None, when: Predicate | None = None
) -> Callable[[Function], Enrichment]:
    """Declare an async function as an enrichment.

    Its first parameter is the Api; each further parameter names what it needs: a field of the state, or another
    enrichment's slot. `T | None` makes a need optional. Its return annotation is the model of the result.

        @enrichment(api="registry")
        async def aircraft(api: Api, tailnum: str) -> Aircraft:
            return await api.get("/aircraft/{tailnum}", Aircraft, tailnum=tailnum)

    `stale_after` asks again, with the same inputs, when an answer has become that old. `when` is a pure function of
    some inputs, by name: while it is false the enrichment is skipped, without a call.
    Raises DeclarationError, saying what to write instead.
    """

    def declare(function: Function) -> Enrichment:
        name = getattr(function, "__name__", "enrichment")
        hints = get_type_hints(function)
        result = hints.pop("return", None)
        parameters = list(inspect.signature(function).parameters)[1:]
        _check(function, name, result, [p for p in parameters if p not in hints])
        _check_staleness(name, stale_after)
        needs = tuple(_need(parameter, hints[parameter]) for parameter in parameters)
        kinds = {need.name: need.kind for need in needs}
        return Enrichment(
            name=name,
            needs=needs,
            result=result,
            api=api,
            function=function,
            stale_after=stale_after,
            when=None if when is None else condition(f"{name}(when=…)", when, kinds),
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
        raise DeclarationError(f"{name}(stale_after={spelled(stale_after)})", "makes every answer stale at once", write)
