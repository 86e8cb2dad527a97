"""Decodes values: as JSON objects, or as a pydantic model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from services.client.errors import ModelMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable

Value = dict[str, Any]


def reader(state: str, key: str, model: type[BaseModel] | None) -> Callable[[Any], Any]:
    """Makes of a value what is wanted. Raises ModelMismatchError."""

    def read(value: Any) -> Any:
        if model is None:
            if not isinstance(value, dict):
                raise TypeError("value is no object")
            return value
        try:
            return model.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ModelMismatchError(state, key, model.__name__, f"{where}: {first['msg']}") from error

    return read
