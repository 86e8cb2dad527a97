"""Pages of keys, versions of a key, and the list of states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic

from services.client.answers import Found, T, found
from services.client.decoding import reader
from services.client.errors import InvalidResponseError
from services.client.responses import content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from services.client.transport import InstanceResponse


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some keys or windows of a state with their values. `after` continues after the last; None at the end."""

    items: Sequence[Found[T]]
    after: str | None


@dataclass(frozen=True)
class StateInfo:
    """A readable state on one instance: `keys` is its number of keys, `lag` its lag in records.

    `keys` is None for a token that may not read all of them. `window` is the size of the windows of a windowed state,
    and `every` the time from the start of one to the next; None for other states. `facts` is the whole response, with
    the schema.
    """

    name: str
    partitions: int
    keys: int | None
    lag: int
    facts: Mapping[str, Any]
    window: timedelta | None = None
    every: timedelta | None = None


def page(reply: InstanceResponse, state: str, model: type[BaseModel] | None) -> Page[Any]:
    """Return the page of a response. Raises AttemptFailedError, RejectedError or InvalidResponseError."""
    body = content(reply, state)
    return Page(_items(reply, body, "items", state, model), body.get("after"))


def window_page(reply: InstanceResponse, state: str, name: str) -> Page[Any]:
    """Return the page of a response whose items are the member `name`, with a cursor."""
    body = content(reply, state)
    return Page(_items(reply, body, name, state, None), body.get("cursor"))


def versions(reply: InstanceResponse, state: str, key: str, model: type[BaseModel] | None) -> list[Found[Any]]:
    """Return the versions of a response, the earliest first."""
    return _items(reply, content(reply, f"{state}/{key}"), "versions", state, model)


def states(reply: InstanceResponse) -> list[StateInfo]:
    """Return the states of a response."""
    try:
        return [_state(state) for state in content(reply, "states")["states"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidResponseError(reply.url, f"of a state, {error}") from error


def _items(
    reply: InstanceResponse, body: Mapping[str, Any], name: str, state: str, model: type[BaseModel] | None
) -> list[Found[Any]]:
    try:
        return [found(item, reader(state, item["key"], model)) for item in body[name]]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidResponseError(reply.url, f"of an item's fields, {error}") from error


def _state(state: Mapping[str, Any]) -> StateInfo:
    keys = None if state["keys"] is None else int(state["keys"])
    window, every = (_duration(state.get(name)) for name in ("window_s", "every_s"))
    return StateInfo(state["name"], len(state["partitions"]), keys, int(state["lag"]["records"]), state, window, every)


def _duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
