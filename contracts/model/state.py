"""What is known of a device: a declared merge of its deltas."""

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict

from contracts.errors import DeclarationError
from contracts.reducers import Enriched, Reducer

HOUR = timedelta(hours=1)


class State(BaseModel):
    """The state of one device in one window. A reducer in the annotation of each field computes its value.

        class Car(State, lifetime=timedelta(hours=1)):
            speed: Annotated[float | None, Latest()]
            trips: Annotated[int, Count()]
            owner: Annotated[Owner | None, Enriched()]

    The arguments of the class: `key` is the field of the event that identifies the device; the window starts at
    `first_seen` and ends a `lifetime` later; records are accepted until `grace` after its end.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: ClassVar[str] = "device_id"
    lifetime: ClassVar[timedelta] = HOUR
    grace: ClassVar[timedelta] = timedelta(minutes=10)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        cls.key = kwargs.pop("key", cls.key)
        cls.lifetime = kwargs.pop("lifetime", cls.lifetime)
        cls.grace = kwargs.pop("grace", cls.grace)
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if cls.lifetime <= timedelta(0) or cls.grace <= timedelta(0):
            raise DeclarationError(
                cls.__name__, "lifetime and grace must be positive", "Write lifetime=timedelta(hours=1)"
            )


def reducers(state: type[State]) -> dict[str, tuple[Reducer, Any]]:
    """Each field's reducer and annotation (without the reducer), in the order of declaration.

    Raises DeclarationError for a field without a reducer, or with two.
    """
    found: dict[str, tuple[Reducer, Any]] = {}
    for name, annotation in get_type_hints(state, include_extras=True).items():
        if get_origin(annotation) is ClassVar or name not in state.model_fields:
            continue
        parts = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        declared = [part for part in parts[1:] if isinstance(part, Reducer)]
        for part in parts[1:]:
            _check_is_called(f"{state.__name__}.{name}", part)
        if len(declared) != 1:
            raise DeclarationError(
                f"{state.__name__}.{name}",
                f"has {len(declared)} reducers",
                f"Write {name}: Annotated[<type>, <one reducer, such as Latest()>]",
            )
        found[name] = (declared[0], parts[0])
    return found


def _check_is_called(where: str, part: Any) -> None:
    """Refuse the class of a reducer in the place of a reducer."""
    if isinstance(part, type) and issubclass(part, Reducer):
        required = any(one.default is MISSING and one.default_factory is MISSING for one in fields(part))
        write = f"Write {part.__name__}({'…' if required else ''})"
        raise DeclarationError(where, f"{part.__name__} is a class, not a reducer", write)


def slots(state: type[State]) -> dict[str, Any]:
    """The fields that enrichments write, with their annotations."""
    return {name: kind for name, (reducer, kind) in reducers(state).items() if isinstance(reducer, Enriched)}
