"""Checks the paths of a state's indexes against the JSON Schema of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contracts.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contracts.model.named_state import NamedState

REF = "#/$defs/"


def check_indexes(state: NamedState) -> None:
    """Raise DeclarationError for an index of a field that no record of the state has."""
    for path in state.query.indexes:
        nodes = list(_alternatives(state.schema, state.schema))
        known = ""
        for part in path.split("."):
            names = {name for node in nodes for name in node.get("properties", ())}
            following = [child for node in nodes for child in _children(node, part)]
            if not following:
                write = f"Write one of these: {', '.join(known + name for name in sorted(names)) or 'another field'}"
                where = f"QueryOptions(indexes={path!r}) of {state.name}"
                raise DeclarationError(where, "is no field of its records", write)
            nodes = [alternative for child in following for alternative in _alternatives(child, state.schema)]
            known += f"{part}."


def _children(node: Mapping[str, Any], name: str) -> Iterator[Any]:
    """Yield the schemas of a field. A schema without a type allows anything."""
    if name in node.get("properties", ()):
        yield node["properties"][name]
    elif isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"]
    elif node.get("additionalProperties") is True or not {"type", "enum", "const"} & node.keys():
        yield {}


def _alternatives(node: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that a value may have, with references resolved."""
    if not isinstance(node, dict):
        yield {}
        return
    if str(node.get("$ref", "")).startswith(REF):
        yield from _alternatives(root["$defs"][node["$ref"].removeprefix(REF)], root)
        return
    options = [option for kind in ("anyOf", "oneOf", "allOf") for option in node.get(kind, ())]
    if not options:
        yield node
    for option in options:
        yield from _alternatives(option, root)
