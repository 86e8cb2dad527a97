"""The events that an application reads."""

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from contracts.errors import DeclarationError
from contracts.types import columns
from contracts.types.bounds import bounds
from contracts.types.key import Key


class BaseEvent(BaseModel):
    """One record of a stream. An application's own event adds its fields, at least the fields of its state's key.

    A field is either required or `T | None = None`: the job fills in no defaults. A record has it by its name.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    ts: AwareDatetime
    """The time of this event, with an offset from UTC."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        columns.check_distinct(cls)
        for name, field in cls.model_fields.items():
            where = f"{cls.__name__}.{name}"
            columns.sql_type(field.annotation, where)
            _check_nested_times(field.annotation, where)
        for model in columns.models(cls):
            _check_defaults(model)
            columns.check_required(model)
            _check_aliases(model)
        bounds(cls)


def _check_defaults(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        where = f"{model.__name__}.{name}"
        if not field.is_required() and (field.default is not None or field.default_factory is not None):
            raise DeclarationError(where, "has a default", "Make it required, or write `T | None = None`")


def _check_aliases(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        aliases = field.alias, field.validation_alias, field.serialization_alias
        if alias := next((alias for alias in aliases if alias not in (None, name)), None):
            where, write = f"{model.__name__}.{name}", "Name the field as the record does; a Raw source renames fields"
            raise DeclarationError(where, f"has the alias {alias!r}, and the job reads fields by name", write)


def _check_nested_times(annotation: Any, where: str) -> None:
    inner, _ = columns.without_none(annotation)
    if inner is datetime or "TIMESTAMP" not in columns.sql_type(inner, where):
        return
    raise DeclarationError(where, "has a datetime inside", "Move it to a field of the event itself")


class Event(BaseEvent):
    """One record of a device. A state with a lifetime needs `first_seen`; `event_id` identifies copies of an event."""

    device_id: Key
    event_id: str = Field(min_length=1, max_length=256)
    first_seen: AwareDatetime
    """The time of the device's initial event: the start of the window. All events of the window have the same value."""
