"""Writes the reference of declarations: `python -m services.tools.reference docs/reference/declarations.md`."""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path
from textwrap import dedent
from typing import Any

from pydantic import create_model

import contracts
from contracts import reducers
from contracts.reducers import ValueCount
from contracts.types.declaration import spelled

HEAD = """# Reference of declarations

`python -m services.tools.reference docs/reference/declarations.md` generates this page from the code. All names are
imported from `stateloop`. [Enrichments](../how-to/enrichments.md) and [queries](../how-to/query-states.md) have how-to
pages.
"""
REDUCERS = """## Reducers

A reducer stands in the annotation of a field of the state: `speed: Annotated[float | None, Latest()]`. `of` names the
field of the event that it reads, and `where` is a [filter](../how-to/filters.md) of the events whose values it reduces:
`Count(where=field("status") == "departed")`. `alias` is the first name of a [renamed
field](../how-to/upgrade.md#renamed-fields). `T` is the type of the field, without `| None`. [Write a
reducer](../how-to/write-a-reducer.md) of your own where none of these fits.
"""
BAR = "\\|"
TABLE = ("| argument | type | default | meaning |", "|---|---|---|---|")
SOURCES_OF_FIELDS = ("FromKey", "FromHeader", "FromTimestamp", "FromOrigin", "FromValue")
SECTIONS = {
    "Application": ("Application", "Emit", "Processor", "Topics", "Budget", "Suite"),
    "Event and state": ("BaseEvent", "Event", "State", "composite_key"),
    "Filters": ("field", "Filter"),
    "Raw sources": ("Raw", "RawRecord", "PackedIntegers", "FieldSource", *SOURCES_OF_FIELDS),
    "Named states": ("QueryOptions", "Derived", "Table", "NamedState"),
    "Alerts": ("Alerts", "AlertRule", "Webhook"),
    "Enrichments": ("enrichment", "Api.get", "Api.get_one", "Quantize", "Batch", "Echo"),
    "Policies of APIs": ("Policy", "RateLimit", "Breaker", "Cache"),
}
ARGUMENTS: dict[str, Any] = {
    "n": 1,
    "k": 1,
    "bounds": (1.0,),
    "bits": 1,
    "probabilities": (0.5,),
    "step": timedelta(seconds=1),
    "rate": 1.0,
}
DOCUMENTED_SEPARATELY = ("where", "alias", "window")
"""The heading describes the first two, and the state sets the last."""

Model = create_model("Model")
SOURCES = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    datetime: "datetime",
    list[str]: "list",
    Model: "model",
}


def page() -> str:
    """Return the whole page."""
    sections = [f"## {title}\n\n" + "\n".join(map(_declaration, names)) for title, names in SECTIONS.items()]
    kinds = [vars(reducers)[name] for name in reducers.__all__ if name not in ("Reducer", "ValueCount")]
    return "\n".join((HEAD, *sections, REDUCERS, *map(_reducer, kinds), _declaration("ValueCount"))).rstrip() + "\n"


def _declaration(name: str) -> str:
    """The docstring and the arguments of a class with fields, or of a function or `__init__`."""
    declared: Any = attrgetter(name)(contracts)
    own = declared.__init__ if declared in {contracts.Application, contracts.Suite} else declared
    rows = fields(own) if inspect.isclass(own) else _parameters(_node(own))
    scope = vars(inspect.getmodule(declared))
    cells = ((f"`{member}`", f"`{kind}`", _default(value, scope), text) for member, kind, value, text in rows)
    table = [f"| {' | '.join(' '.join(cell.split()).replace('|', BAR) for cell in row)} |" for row in cells]
    return "\n".join((f"### {name}\n\n{inspect.getdoc(declared)}\n", *((*TABLE, *table, "") if table else ())))


def _parameters(node: Any) -> Iterator[tuple[str, str, ast.expr | None, str]]:
    positional = [(argument, None) for argument in (*node.args.posonlyargs, *node.args.args) if argument.arg != "self"]
    for argument, default in (*positional, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)):
        yield argument.arg, ast.unparse(argument.annotation), default, ""
    if node.args.vararg:
        yield f"*{node.args.vararg.arg}", ast.unparse(node.args.vararg.annotation), None, ""


def fields(declared: type) -> Iterator[tuple[str, str, ast.expr | None, str]]:
    """Yield the name, the type, the default and the docstring of each field in the source of a class."""
    body = _node(declared).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        description = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        if isinstance(statement, ast.Assign) and (name := ast.unparse(statement.targets[0])).isupper():  # of an enum
            yield name, "str", statement.value, str(description)
        elif isinstance(statement, ast.AnnAssign):
            kind = re.sub(r"^ClassVar\[(.*)\]$", r"\1", ast.unparse(statement.annotation))
            yield ast.unparse(statement.target), kind, statement.value, str(description)


def _node(declared: Any) -> Any:
    (node,) = ast.parse(dedent(inspect.getsource(declared))).body
    return node


def _default(value: ast.expr | None, scope: dict[str, Any]) -> str:
    """The default as the source spells it, or the value of a constant."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).lower() == "field":
        value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    if value is None:
        return "required"
    return f"`{spelled(scope[value.id]) if isinstance(value, ast.Name) else ast.unparse(value)}`"


def _reducer(kind: type[reducers.Reducer]) -> str:
    signature = inspect.signature(kind)
    own = [parameter for name, parameter in signature.parameters.items() if name not in DOCUMENTED_SEPARATELY]
    signature = signature.replace(parameters=own)
    required = {parameter.name: ARGUMENTS[parameter.name] for parameter in own if parameter.default is parameter.empty}
    taken, result = _results(kind(**required))
    call = f"{kind.__name__}{str(signature).removesuffix(' -> None')}"
    types = f"`T`: {taken}. Type of the field of the state: {result}."
    return f"### {kind.__name__}\n\n`{call}`\n\n{inspect.getdoc(kind)}\n\n{types}\n"


def _results(reducer: reducers.Reducer) -> tuple[str, str]:
    """The types of fields that a reducer takes, and the type that it gives."""
    results = _results_by_source(reducer, SOURCES)
    if not results:
        lists = _results_by_source(reducer, (list[int], list[float]))
        return ", ".join(f"`{source}`" for source in lists), ", ".join(f"`{result}`" for result in lists.values())
    result_names = {re.sub("<class '(.*)'>", r"\1", str(result)) for result in results.values()}
    if len(result_names) > 1 or list(results) == [Model]:
        source, result = next(iter(results.items()))
        named = {source: "T", source | None: "T | None", list[source]: "list[T]"}  # type: ignore[valid-type]
        counted = {list[ValueCount[source]]: "list[ValueCount[T]]"}  # type: ignore[valid-type]
        result_names = {(named | counted)[result]}
    return ", ".join(f"`{SOURCES[source]}`" for source in results), f"`{result_names.pop()}`"


def _results_by_source(reducer: reducers.Reducer, sources: Iterable[Any]) -> dict[Any, Any]:
    """The type that a reducer gives, by each type of a field that it takes."""
    results: dict[Any, Any] = {}
    for source in sources:
        with suppress(TypeError):
            results[source] = reducer.gives(source | None)
    return results


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
