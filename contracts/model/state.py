"""The state of a key: a declared merge of its deltas."""

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict

from contracts.errors import DeclarationError
from contracts.model.policy import NO_TIME
from contracts.reducers import Enriched, Reducer
from contracts.types.columns import check_distinct
from contracts.types.declaration import check_argument, check_names, spelled
from contracts.types.filters import Filter

HOUR = timedelta(hours=1)


MAX_WINDOWS = 64
"""The largest number of hopping windows that one event is in: each of them is a row of the job's state."""
ARGUMENTS: dict[str, Any] = {
    "key": str | tuple[str, ...],
    **dict.fromkeys(("lifetime", "window", "every", "offset", "grace"), timedelta),
    "where": Filter | None,
}
"""The arguments of the class of a state, with their types."""


class State(BaseModel):
    """The state of one key in one window. A reducer in the annotation of each field computes its value.

        class Car(State, lifetime=timedelta(hours=1)):
            speed: Annotated[float | None, Latest()]
            trips: Annotated[int, Count()]
            owner: Annotated[Owner | None, Enriched()]

        class Departures(State, key=("origin", "carrier"), window=timedelta(hours=1)):
            flights: Annotated[int, Count()]

    The arguments of the class: `key` names the field of the event that identifies the key, or several. With
    `lifetime`, the window starts at the event's `first_seen` and ends a `lifetime` later. With `window`, all windows
    have this size and are aligned to 1970-01-01T00:00Z plus `offset`; a new one starts `every` so often, by default
    when the former ends. Records are accepted until `grace` after the window's end. The fields of a state that a
    processor computes have no reducers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: ClassVar[tuple[str, ...]] = ("device_id",)
    """The argument `key`: a field, or a tuple of fields."""
    lifetime: ClassVar[timedelta] = HOUR
    """The span of a window; in a windowed state, the window's size."""
    window: ClassVar[timedelta | None] = None
    every: ClassVar[timedelta | None] = None
    """The time between the starts of two windows; by default the window's size, so windows do not overlap."""
    offset: ClassVar[timedelta] = NO_TIME
    grace: ClassVar[timedelta] = timedelta(minutes=10)
    where: ClassVar[Filter | None] = None
    """The events that are merged; by default all. One that does not pass is counted, and is no dead letter."""
    is_windowed: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        arguments = {name: kwargs.pop(name) for name in ARGUMENTS if name in kwargs}
        for name, value in arguments.items():
            check_argument(cls.__name__, name, value, ARGUMENTS[name])
        if "key" in arguments:
            cls.keys = (arguments["key"],) if isinstance(arguments["key"], str) else tuple(arguments["key"])
        cls.grace = arguments.get("grace", cls.grace)
        cls.where = arguments.get("where", cls.where)
        _set_window(cls, arguments)
        try:
            super().__init_subclass__(**kwargs)
        except TypeError:  # no other base class takes them
            check_names(cls.__name__, kwargs, ARGUMENTS)
            raise

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        _check_arguments(cls)
        check_distinct(cls)
        if cls.window is not None and cls.every is not None:
            _check_window(cls.__name__, cls.window, cls.every, cls.offset)


def _set_window(state: type[State], arguments: dict[str, Any]) -> None:
    """Set the span of a state's windows. Raises DeclarationError for arguments that contradict each other."""
    if "window" in arguments and "lifetime" in arguments:
        write = "Write lifetime= if the window starts at first_seen, and window= if it starts by the clock"
        raise DeclarationError(state.__name__, "has a window and a lifetime", write)
    if "lifetime" in arguments:
        state.lifetime, state.window, state.every, state.offset = arguments["lifetime"], None, None, NO_TIME
    if "window" in arguments:
        state.lifetime = state.window = state.every = arguments["window"]
    for name in ("every", "offset"):
        if name in arguments and state.window is None:
            raise DeclarationError(state.__name__, f"has {name}= without window=", "Write window=timedelta(hours=1)")
        setattr(state, name, arguments.get(name, getattr(state, name)))
    state.is_windowed = state.window is not None


def _check_arguments(state: type[State]) -> None:
    if state.lifetime <= NO_TIME or state.grace <= NO_TIME:
        span = "window" if state.is_windowed else "lifetime"
        raise DeclarationError(state.__name__, f"{span} and grace must be positive", f"Write {span}=timedelta(hours=1)")
    if not state.keys or len(set(state.keys)) < len(state.keys):
        raise DeclarationError(state.__name__, f"has the key {state.keys}", "Name each field of the key once")
    for name in sorted({"keys", *ARGUMENTS} & state.model_fields.keys()):
        write = f"Choose another name, and name the event's field with of={name!r}"
        raise DeclarationError(f"{state.__name__}.{name}", "has the name of an argument of the class", write)


def _check_window(where: str, window: timedelta, every: timedelta, offset: timedelta) -> None:
    if every <= NO_TIME or window % every:
        write = f"Write every=timedelta(…) that divides {window}"
        raise DeclarationError(f"{where}(every={spelled(every)})", "does not divide the window", write)
    if window // every > MAX_WINDOWS:
        write = f"Write a step of which the window has {MAX_WINDOWS} at most"
        raise DeclarationError(
            f"{where}(every={spelled(every)})", f"puts an event into {window // every} windows", write
        )
    if not NO_TIME <= offset < every:
        write = f"Write offset={spelled(offset % every)}"
        raise DeclarationError(f"{where}(offset={spelled(offset)})", "is not within one step of the windows", write)


def annotations(state: type[State]) -> dict[str, tuple[Reducer | None, Any]]:
    """Each field's reducer and annotation (without the reducer), in the order of declaration.

    A field that a processor computes has no reducer. Raises DeclarationError for a field with two, and for one that its
    window is too large for.
    """
    declarations: dict[str, tuple[Reducer | None, Any]] = {}
    for name, annotation in get_type_hints(state, include_extras=True).items():
        if get_origin(annotation) is ClassVar or name not in state.model_fields:
            continue
        parts = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        declared = [part for part in parts[1:] if isinstance(part, Reducer)]
        for part in parts[1:]:
            _check_is_called(f"{state.__name__}.{name}", part)
        if len(declared) > 1:
            raise _not_one(state, name, len(declared))
        declarations[name] = (declared[0].within(state.lifetime) if declared else None, parts[0])
    return declarations


def reducers(state: type[State]) -> dict[str, tuple[Reducer, Any]]:
    """The `annotations` of a state that is merged. Raises DeclarationError for a field without a reducer, too."""
    merged = {}
    for name, (reducer, annotation) in annotations(state).items():
        if reducer is None:
            raise _not_one(state, name, 0)
        merged[name] = (reducer, annotation)
    return merged


def _not_one(state: type[State], name: str, declared: int) -> DeclarationError:
    write = f"Write {name}: Annotated[<type>, <one reducer, such as Latest()>]"
    return DeclarationError(f"{state.__name__}.{name}", f"has {declared} reducers", write)


def _check_is_called(where: str, part: Any) -> None:
    """Refuse the class of a reducer in the place of a reducer."""
    if isinstance(part, type) and issubclass(part, Reducer):
        required = any(field.default is MISSING and field.default_factory is MISSING for field in fields(part))
        write = f"Write {part.__name__}({'…' if required else ''})"
        raise DeclarationError(where, f"{part.__name__} is a class, not a reducer", write)


def field_aliases(state: type[State]) -> dict[str, str]:
    """The first names of renamed fields, by the present ones. Raises DeclarationError for the name of another field."""
    aliases = {
        name: reducer.alias
        for name, (reducer, _) in annotations(state).items()
        if reducer is not None and reducer.alias
    }
    for name, alias in aliases.items():
        if alias in state.model_fields or list(aliases.values()).count(alias) > 1:
            write = "Write the name that this field alone had, or leave alias out"
            raise DeclarationError(f"{state.__name__}.{name}(alias={alias!r})", "is the name of another field", write)
    return aliases


def slots(state: type[State]) -> dict[str, Any]:
    """The fields that enrichments write, with their annotations."""
    return {name: kind for name, (reducer, kind) in annotations(state).items() if isinstance(reducer, Enriched)}
