"""A declared check that an answer is for what the call requested."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import AfterValidator, BaseModel, GetCoreSchemaHandler, ValidationError, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError

from contracts.errors import DeclarationError, RetryableCallError, problem_of

M = TypeVar("M", bound=BaseModel)
MISMATCH = "stateloop_echo"
VALUES = "stateloop_values"
"""The key of the call's values in the validation context."""


class MismatchError(RetryableCallError):
    """The answer has another value than the call requested: it may belong to another request."""


@dataclass(frozen=True)
class Echo:
    """A field of an answer that repeats a value of the call: the one of the field's name, unless `value` names another.

        class Owner(BaseModel):
            plate: Annotated[str, Echo()]
            name: str

        await api.get("/owners/{plate}", Owner, plate=plate)

    An answer with another value, or with null, is no result: the worker closes its connection and retries, and the
    last attempt is a failure. Values are the same if they are equal, or equal as text (7 and "7").
    """

    value: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the value after the field's own type."""
        return AfterValidator(self._checked).__get_pydantic_core_schema__(source, handler)

    def _checked(self, value: Any, info: ValidationInfo) -> Any:
        """Return the value. A model that is not created from an answer is not checked."""
        if not isinstance(info.context, Mapping) or VALUES not in info.context:
            return value
        values: Mapping[str, Any] = info.context[VALUES]
        name = self.value or info.field_name or ""
        if name not in values:
            write = f"Give it to the call, as in api.get(…, {name}={name}), or write Echo(<the name of a value>)"
            raise DeclarationError(f"Echo({name!r})", "the call has no value of this name", write)
        if value != values[name] and str(value) != str(values[name]):
            raise PydanticCustomError(MISMATCH, "it differs from the {value} of the call", {"value": name})
        return value


def has_echo(model: type[BaseModel]) -> bool:
    """Return whether a field of a model repeats a value of the call."""
    return any(isinstance(part, Echo) for field in model.model_fields.values() for part in field.metadata)


def answer_of(model: type[M], document: Any, values: Mapping[str, Any], *, by_name: bool = False) -> M:
    """An answer to a call with these values, as the model. Raises ValidationError, MismatchError.

    The document has the names of the API, which a model may declare as aliases, or the names of the fields.
    """
    by_alias = False if by_name else None  # None: as the model is configured
    try:
        return model.model_validate(document, context={VALUES: values}, by_alias=by_alias, by_name=by_name or None)
    except ValidationError as error:
        for problem in error.errors(include_input=False, include_url=False):
            if problem["type"] == MISMATCH:
                reason = f"the response answers another request: {model.__name__}.{problem_of(problem)}"
                raise MismatchError(reason) from error
        raise
