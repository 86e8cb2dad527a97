"""An API with the prepared answers of a test."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError

from contracts.errors import CallError, PermanentCallError, StateloopError
from contracts.model.batch import Batch
from contracts.model.enrichment import M, unfilled
from contracts.types.echo import answer_of

Prepared = BaseModel | dict[str, Any] | CallError | list[Any] | Callable[..., Any]


class UnpreparedError(StateloopError):
    """A call for which the test has no answer. `target` is the path with its query."""

    def __init__(self, target: str, prepared: list[str]) -> None:
        super().__init__(f"no answer to {target!r}: add it to FakeApi, which has {', '.join(prepared) or 'none'}")
        self.target = target


class FakeApi:
    """Answers by target, or by path without query: `{"/planes/N1": {"seats": 20}, "/planes/N2": AbsentError("N2")}`.

    An answer is a model, a dict, an error to raise, a function of the call's values, or a list of these, of which each
    call takes the next; the last one stays. With hopping windows, each window of an event makes a call. `calls` has the
    target of each call. Raises UnpreparedError for any other.
    """

    def __init__(self, answers: Mapping[str, Prepared]) -> None:
        self.answers = dict(answers)
        self.calls: list[str] = []

    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        """Return the prepared answer, as the model.

        Raises PermanentCallError for one that does not fit, and RetryableCallError for one to another call (`Echo`): a
        worker retries both, and then has a failure.
        """
        return await self._get(path, model, values, values)

    async def _get(
        self, path: str, model: type[M], values: Mapping[str, str | float], echoed: Mapping[str, str | float]
    ) -> M:
        placed = {name: quote(str(value), safe="") for name, value in values.items() if f"{{{name}}}" in path}
        query = urlencode({name: value for name, value in values.items() if name not in placed})
        try:
            bare = path.format_map(placed)
        except KeyError as name:
            raise unfilled(path, str(name.args[0])) from None
        target = f"{bare}?{query}" if query else bare
        self.calls.append(target)
        next_answer = self._next(target if target in self.answers else bare, target)
        answer = next_answer(**values) if callable(next_answer) else next_answer
        if isinstance(answer, CallError):
            raise answer
        is_model = isinstance(answer, BaseModel)
        document = answer.model_dump(by_alias=False) if is_model else answer
        try:
            return answer_of(model, document, echoed, by_name=is_model)
        except ValidationError as error:
            raise PermanentCallError(f"the answer to {target} does not fit {model.__name__}: {error}") from error

    async def get_one(self, batch: Batch[M], key: str | int) -> M:
        """Return the item of one key, as in `/planes?tailnum=N1`. Raises AbsentError for a key without one."""
        return await self._get(batch.path, batch.model, {batch.parameter: key}, {batch.parameter: key, batch.key: key})

    def _next(self, key: str, target: str) -> Any:
        if key not in self.answers:
            raise UnpreparedError(target, sorted(self.answers))
        entry = self.answers[key]
        if isinstance(entry, list):
            return entry.pop(0) if len(entry) > 1 else entry[0]
        return entry
