"""Declarations: classes and functions that check their arguments against the annotations of their parameters."""

from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import EnumType
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from numbers import Integral, Real
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from contracts.errors import DeclarationError

P = ParamSpec("P")
R = TypeVar("R")
NUMBERS: dict[Any, type] = {int: Integral, float: Real}
FORMS: dict[Any, tuple[str, str]] = {
    str: ("text", "a text in quotes"),
    int: ("whole number", "a whole number"),
    float: ("number", "a number"),
    bool: ("bool", "True or False"),
    Callable: ("function", "the name of a function, or a lambda"),
    Mapping: ("dict", "a dict, such as {'name': …}"),
}
"""The names of kinds in messages, and what to write for a value of each."""
LONGEST = 60
"""In characters: the longest value that a message repeats."""


class _Checked(ABCMeta):
    """The class of the declarations' classes."""

    if not TYPE_CHECKING:  # it would hide the parameters of each class from the type checker

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            check_call(cls, args, kwargs)
            return super().__call__(*args, **kwargs)

        @property
        def __signature__(cls) -> Signature:
            return _form(cls)[0]


class Declaration(metaclass=_Checked):
    """The base of what an application declares. A wrong argument raises DeclarationError, with what to write.

    The class attribute `written_as` is the source code of an instance, where that is not a call of the class.
    """


def declares(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a function as those of a declaration."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_call(function, args, kwargs)
        return function(*args, **kwargs)

    return checked


def check_call(declared: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the arguments of a class or a function, and change none. Raises DeclarationError."""
    form, kinds = _form(declared)
    where, parameters = declared.__name__, form.parameters.values()
    positional = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    each_of = [each.name for each in parameters if each.kind is Parameter.VAR_POSITIONAL] * len(args)
    if all(each.kind is not Parameter.VAR_KEYWORD for each in parameters):
        check_names(where, kwargs, form.parameters)
    for name, value in (*zip((*positional, *each_of), args, strict=False), *kwargs.items()):
        check_argument(where, name, value, kinds.get(name, Any))
    try:
        form.bind(*args, **kwargs)
    except TypeError as error:
        required = [each.name for each in parameters if each.default is each.empty and each.name not in each_of]
        write = f"Write {where}({''.join(f'{name}=…, ' for name in required)}…)"
        raise DeclarationError(where, str(error), write) from error


def check_names(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise DeclarationError for the name of an argument that there is not."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            write = f"Did you mean {near[0]}?" if near else f"Write one of these: {', '.join(known)}"
            raise DeclarationError(f"{where}({name}=…)", "no such argument", write)


def check_argument(where: str, name: str, value: Any, kind: Any) -> None:
    """Raise DeclarationError for an argument of another kind, or with an item of another kind."""
    if misfit := _misfit(value, kind):
        called, write = _described(name, misfit)
        raise DeclarationError(f"{where}({name}={_named(misfit.value)})", f"is no {called}", f"Write {write}")


class _Misfit(NamedTuple):
    value: Any
    kind: Any


@cache
def _form(declared: Any) -> tuple[Signature, dict[str, Any]]:
    """Return the signature of a class or a function, and the kinds of its parameters."""
    is_class = isinstance(declared, type)
    form = signature(declared.__init__ if is_class else declared)
    names = {each.__name__: each for each in Declaration.__subclasses__()}  # modules of which each needs the other
    try:
        kinds = get_type_hints(declared if is_dataclass(declared) or not is_class else declared.__init__, localns=names)
    except (NameError, AttributeError, TypeError):  # a class of an application: only its type checker reads them
        kinds = {}
    return form.replace(parameters=[*form.parameters.values()][is_class:]), kinds


def _misfit(value: Any, kind: Any) -> _Misfit | None:
    """Return the value, or the item in it, that is not of its kind; None if there is none."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        misfits = [_misfit(value, part) for part in parts]
        return None if None in misfits else misfits[0]
    if origin is tuple and parts[1:] == (...,) and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return next(filter(None, (_misfit(item, parts[0]) for item in value)), None)
    if origin is Mapping and parts and isinstance(value, Mapping):
        return next(filter(None, (_misfit(item, parts[1]) for item in value.values())), None)
    return None if _is_of(value, origin, parts) else _Misfit(value, kind)


def _is_of(value: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    if origin is Any:
        return True
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if origin in NUMBERS:
        return isinstance(value, NUMBERS[origin]) and not isinstance(value, bool)
    try:
        if origin is type and parts:
            bound = getattr(parts[0], "__bound__", parts[0])
            return isinstance(value, type) and issubclass(value, bound)
        return isinstance(value, origin)
    except TypeError:  # a Protocol, a TypeVar: only a type checker knows
        return True


def _described(name: str, misfit: _Misfit) -> tuple[str, str]:
    """Return the name of the kind, and what to write for a value of it."""
    value, kind = misfit
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin is timedelta:
        is_number = isinstance(value, int | float) and value > 0
        return "timedelta", f"timedelta(seconds={value if is_number else 60})"
    if origin is tuple:
        is_item = bool(parts) and _misfit(value, parts[0]) is None
        return "tuple", f"{name}=({_named(value) if is_item else '…'},)"
    if origin is type:
        extended = getattr(getattr(parts[0], "__bound__", parts[0]), "__name__", "BaseModel")
        return f"class that extends {extended}", f"class …({extended}), and its name here"
    if origin is Literal:
        return "known word", " or ".join(map(repr, parts))
    if isinstance(origin, EnumType):
        return origin.__name__, " or ".join(f"{origin.__name__}.{member}" for member in origin.__members__)
    called = getattr(origin, "__name__", str(origin))
    return FORMS.get(origin, (called, getattr(origin, "written_as", f"{called}(…)")))


def _named(value: Any) -> str:
    """Return the name of a class or a function, and any other value as source code; a long one by its type."""
    written = str(getattr(value, "__name__", "")) or spelled(value)
    return written if len(written) <= LONGEST else f"{type(value).__name__}(…)"


def spelled(value: object) -> str:
    """Return a value as source code of a declaration."""
    return repr(value).replace("datetime.", "")
