"""An enrichment: an async function with declared needs, and the model that it gives."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Protocol, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter

from contracts.errors import DeclarationError
from contracts.model.batch import Batch
from contracts.model.condition import Condition, Predicate, condition, typed
from contracts.model.policy import NO_TIME
from contracts.types.columns import constraints, is_model, without_none
from contracts.types.declaration import Declaration, declares, spelled
from contracts.types.quantize import Quantize

M = TypeVar("M", bound=BaseModel)


class Api(Protocol):
    """The client with which an enrichment calls its API. The worker passes the real one, the test kit a fake one."""

    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        """GET the path on the enrichment's API and validate the JSON answer as the model.

        `{name}` in the path takes the value of that name, percent-encoded; the other values become the query.
        Raises AbsentError when the API does not know it, PermanentCallError after all attempts of the policy.
        """
        ...

    async def get_one(self, batch: Batch[M], key: str | int) -> M:
        """Request one key; the worker combines the keys of many devices into one call. Raises as `get` does."""
        ...


def unfilled(path: str, name: str) -> DeclarationError:
    """The error of a `get` that gives no value for a name in its path."""
    return DeclarationError(f"get({path!r}, …)", f"has no value for {{{name}}}", f"Write get({path!r}, …, {name}=…)")


Function = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Need:
    """One input of an enrichment: a field of the state, or the result in a slot.

    An enrichment runs without an optional input, but not while that input is to be requested.
    """

    name: str
    annotation: Any
    optional: bool
    near: Quantize | None = None

    @property
    def kind(self) -> Any:
        """The type of the function's parameter."""
        return self.annotation | None if self.optional else self.annotation


@dataclass(frozen=True)
class Enrichment(Declaration):
    """A declared enrichment. It writes the slot of its own name."""

    written_as = "@enrichment(api=…) above the function"

    name: str
    needs: tuple[Need, ...]
    result: type[BaseModel]
    api: str
    function: Function
    stale_after: timedelta | None
    when: Condition | None = None
    rounds: int | None = None
    at_most_every: timedelta | None = None
    aliases: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The first names of its slot and of its needs, by the present ones, of those that were renamed."""

    @property
    def recorded_as(self) -> str:
        """The name in feedback and dead letters: the name of the first enrichment of the slot."""
        return self.aliases.get(self.name, self.name)

    @cached_property
    def rounding(self) -> dict[str, Quantize]:
        """The quantization of inputs, by the names of the quantized ones."""
        return {need.name: need.near for need in self.needs if need.near}

    @cached_property
    def _types(self) -> dict[str, TypeAdapter[Any]]:
        return {need.name: TypeAdapter(need.kind) for need in self.needs}

    def typed(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs, as on the wire, in the types of the parameters. Raises ValidationError."""
        return typed(self._types, inputs)

    @staticmethod
    def written(result: BaseModel) -> dict[str, Any]:
        """Return a result as on the wire: by the names of its fields, without nulls. `typed` reads it."""
        return result.model_dump(mode="json", by_alias=False, exclude_none=True)

    def __call__(self, api: Api, **inputs: Any) -> Awaitable[BaseModel]:
        """Run the function itself, as a test would."""
        return self.function(api, **inputs)

    def checked(self, returned: Any) -> BaseModel:
        """Return what the function returned. Raises DeclarationError if it is not of the declared model."""
        if isinstance(returned, self.result):
            return returned
        declared = self.result.__name__
        problem = f"returned {type(returned).__name__}, not {declared}"
        if inspect.isawaitable(returned):
            raise DeclarationError(self.name, problem, "Write `return await …`: did you forget await?")
        raise DeclarationError(self.name, problem, f"Write `return {declared}(…)`, or raise AbsentError")


@declares
def enrichment(
    *,
    api: str,
    stale_after: timedelta | None = None,
    at_most_every: timedelta | None = None,
    when: Predicate | None = None,
    rounds: int | None = None,
) -> Callable[[Function], Enrichment]:
    """Declare an async function as an enrichment.

    Its first parameter is the Api; each further parameter names what it needs: a field of the state, or another
    enrichment's slot. `T | None` makes a need optional. Its return annotation is the model of the result. It
    raises AbsentError where there is none.

        @enrichment(api="registry")
        async def aircraft(api: Api, tailnum: str) -> Aircraft:
            return await api.get("/aircraft/{tailnum}", Aircraft, tailnum=tailnum)

    `stale_after` asks again, with the same inputs, when an answer has become that old. `when` is a pure function of
    some inputs, by name: while it is false the enrichment is skipped, without a call. `at_most_every` is the least time
    from one request to the next for the same device. `rounds` lets the function read the result of its own last round,
    as an optional parameter of its own name, and is how often it runs at the most.
    Raises DeclarationError, saying what to write instead.
    """

    def declare(function: Function) -> Enrichment:
        name = getattr(function, "__name__", "enrichment")
        hints = get_type_hints(function, include_extras=True)
        result, may_be_none = without_none(hints.pop("return", None))
        parameters = list(inspect.signature(function).parameters.values())
        _check(function, name, result, [p.name for p in parameters[1:] if p.name not in hints])
        if may_be_none:
            write = f"Write `-> {result.__name__}`, and raise AbsentError where there is none"
            raise DeclarationError(name, "may return None", write)
        _check_api(name, parameters, hints)
        _check_times(name, stale_after, at_most_every)
        needs = tuple(_need(name, parameter, hints[parameter.name]) for parameter in parameters[1:])
        _check_rounds(name, rounds, next((need for need in needs if need.name == name), None))
        kinds = {need.name: need.kind for need in needs if need.name != name}
        return Enrichment(
            name=name,
            needs=needs,
            result=result,
            api=api,
            function=function,
            stale_after=stale_after,
            when=None if when is None else condition(f"{name}(when=…)", when, kinds),
            rounds=rounds,
            at_most_every=at_most_every,
        )

    return declare


def _need(of: str, parameter: inspect.Parameter, hint: Any) -> Need:
    name, default = parameter.name, parameter.default
    annotation, optional = without_none(hint)
    if default is not parameter.empty and not (default is None and optional):
        kind = inspect.formatannotation(annotation)
        write = f"Write `{name}: {kind} | None`, and replace None in the function"
        raise DeclarationError(f"{of}({name})", f"the default {default!r} would never be used", write)
    near = next((constraint for constraint in constraints(hint) if isinstance(constraint, Quantize)), None)
    if near and not near.fits(annotation):
        write = "Write a number for a float, a whole number for an int, a timedelta for a datetime"
        raise DeclarationError(f"{of}({name})", f"cannot be rounded by Quantize({near.step!r})", write)
    return Need(name, annotation, optional, near)


def _check(function: Function, name: str, result: Any, bare: list[str]) -> None:
    if not inspect.iscoroutinefunction(function):
        raise DeclarationError(name, "is not async", f"Write `async def {name}(api: Api, …)`")
    if not is_model(result):
        raise DeclarationError(name, "does not declare its result", "Annotate its return with a pydantic model")
    if bare:
        raise DeclarationError(name, f"{', '.join(bare)} has no type", "Annotate each parameter as the state does")


def _check_api(name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> None:
    """Refuse a function whose first parameter is an input: it would receive the Api."""
    first = parameters[0].name if parameters else "none"
    if hints.get(first, Api if first.strip("_") in ("", "api") else None) not in (Api, Any):
        inputs = [f"{p.name}: {inspect.formatannotation(hints[p.name])}" for p in parameters if p.name in hints]
        write = f"Write `async def {name}({', '.join(['api: Api', *inputs])})`"
        raise DeclarationError(name, f"its first parameter, {first}, is not the Api", write)


def _check_times(name: str, stale_after: timedelta | None, at_most_every: timedelta | None) -> None:
    if stale_after is not None and stale_after <= NO_TIME:
        write = "Write stale_after=timedelta(minutes=30), or leave it out for an answer that stays good"
        raise DeclarationError(f"{name}(stale_after={spelled(stale_after)})", "makes every answer stale at once", write)
    if at_most_every is not None and at_most_every <= NO_TIME:
        write = "Write at_most_every=timedelta(minutes=1), or leave it out"
        raise DeclarationError(f"{name}(at_most_every={spelled(at_most_every)})", "holds nothing back", write)


def _check_rounds(name: str, rounds: int | None, own: Need | None) -> None:
    if own and rounds is None:
        write = f"Write @enrichment(rounds=5), or take `{name}` from the parameters"
        raise DeclarationError(f"{name}({name})", "reads its own result without an end", write)
    if own and not own.optional:
        raise DeclarationError(f"{name}({name})", "is not there in the first round", f"Write `{name}: … | None`")
    if rounds is not None and not own:
        write = f"Add `{name}: … | None` to the parameters, or leave rounds out"
        raise DeclarationError(f"{name}(rounds={rounds})", "does not read its own result", write)
    if rounds is not None and rounds < 1:
        raise DeclarationError(f"{name}(rounds={rounds})", "allows no round", "Write rounds=5")
