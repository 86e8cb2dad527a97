"""Fields by their dotted paths: whether a value or a JSON Schema has one, and the texts of all. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEPTH = 2
"""Deeper objects are formatted as JSON."""
CHOICES = ("anyOf", "oneOf", "allOf")


class UnknownPath(NamedTuple):
    """A path that the schema does not have. `parent` is the part that it has, `names` the fields there."""

    path: str
    parent: str
    names: tuple[str, ...]


def has_path(value: Any, path: str) -> bool:
    """Return whether the record has this field."""
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def value_at(value: Any, path: str) -> Any:
    """Return the value of this field of a record; None where the record lacks it."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def unknown_path(schema: Mapping[str, Any], path: str) -> UnknownPath | None:
    """Return where the path leaves the schema; None for a path that a record of this schema may have."""
    names = path.split(".")
    at: list[Mapping[str, Any]] = [schema]
    for depth, name in enumerate(names):
        objects = [alternative for node in at for alternative in _alternatives(schema, node)]
        if any(_is_open(node) for node in objects):
            return None
        known = dict.fromkeys(field for node in objects for field in node.get("properties", ()))
        if name not in known:
            return UnknownPath(path, ".".join(names[:depth]), tuple(known))
        at = [node["properties"][name] for node in objects if name in node.get("properties", ())]
    return None


def rows(value: Any, depth: int = DEPTH) -> dict[str, str]:
    """Return the text of each field by its dotted path, without nulls."""
    return dict(_rows(value, "", depth)) if isinstance(value, dict) else {"": text(value)}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the fields that differ, with the text before and after; empty where the field is absent."""
    names = dict.fromkeys((*now, *before))
    return {
        name: (before.get(name, ""), now.get(name, "")) for name in names if before.get(name, "") != now.get(name, "")
    }


def text(value: Any) -> str:
    """Return a value in one line: a string as it is, all else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _alternatives(schema: Mapping[str, Any], node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The node without references, or each of its choices."""
    if "$ref" in node:
        return _alternatives(schema, schema.get("$defs", {}).get(node["$ref"].rpartition("/")[2], {}))
    choices = [choice for word in CHOICES for choice in node.get(word, ())]
    return [alternative for choice in choices for alternative in _alternatives(schema, choice)] if choices else [node]


def _is_open(node: Mapping[str, Any]) -> bool:
    """Return whether the node is an object of any fields: a map, or one without declared fields."""
    if "properties" in node:
        return bool(node.get("additionalProperties"))
    return str(node.get("type", "object")) == "object"


def _rows(value: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, member in value.items():
        if isinstance(member, dict) and member and depth:
            yield from _rows(member, f"{above}{name}.", depth - 1)
        elif member is not None:
            yield above + name, text(member)
