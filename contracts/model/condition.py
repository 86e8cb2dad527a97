"""A condition: a pure predicate over some inputs of an enrichment, without which it is skipped."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from contracts.errors import AUTHOR_ERRORS, DeclarationError
from contracts.model.function import check_plain

Predicate = Callable[..., bool]


@dataclass(frozen=True)
class Condition:
    """The predicate of `when=`. `kinds` has the types of the inputs that the predicate takes, by name."""

    predicate: Predicate
    kinds: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the predicate; `when` if it has no name of its own."""
        own = getattr(self.predicate, "__name__", "<lambda>")
        return "when" if own == "<lambda>" else own

    def unmet(self, inputs: Mapping[str, Any]) -> str | None:
        """Return why these inputs, as on the wire, cause no call; None if they cause one."""
        try:
            values = typed(self._types, inputs)
            met = bool(self.predicate(**values))  # a result without a truth value raises, as pandas.NA
        except AUTHOR_ERRORS as error:  # one device must not stop all others
            return f"{self.name} raised {type(error).__name__}"
        return None if met else f"{self.name} is false"

    @cached_property
    def _types(self) -> dict[str, TypeAdapter[Any]]:
        return {name: TypeAdapter(kind) for name, kind in self.kinds.items()}


def typed(types: Mapping[str, TypeAdapter[Any]], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs, as on the wire, in these types. Raises ValidationError.

    A result is on the wire by the names of its fields; their aliases are the names of the API.
    """
    return {name: one.validate_python(inputs[name], by_alias=False, by_name=True) for name, one in types.items()}


def condition(where: str, when: Predicate, needs: Mapping[str, Any]) -> Condition:
    """The condition of an enrichment with these needs, by name. Raises DeclarationError."""
    check_plain(where, when)
    taken = list(_names(where, when))
    if unknown := [name for name in taken if name not in needs]:
        write = f"Name one of these: {', '.join(needs)}"
        raise DeclarationError(where, f"takes {unknown[0]!r}, which the function does not need", write)
    return Condition(when, {name: needs[name] for name in taken})


def _names(where: str, when: Predicate) -> Iterable[str]:
    parameters = inspect.signature(when).parameters.values()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if not parameters or any(parameter.kind not in named for parameter in parameters):
        write = "Name the inputs that it looks at, as in when=lambda speed: speed > 10"
        raise DeclarationError(where, "does not declare its inputs", write)
    return (parameter.name for parameter in parameters)
