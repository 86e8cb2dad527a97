"""Pages of keys, of windows and of versions, and the list of states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic

from services.client.answers import Found, T, Value, found, reader
from services.client.errors import InvalidResponseError
from services.client.responses import content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def page(reply: InstanceResponse, what: str, items: str = "items", after: str = "cursor") -> Page[Value]:
    """Return the page of a response, with the names of its members. Raises AttemptFailedError and ClientError."""
    body = content(reply, what)
    try:
        return Page([found(item, reader(item["state"], item["key"], None)) for item in body[items]], body.get(after))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidResponseError(reply.url, f"of an item's fields, {error}") from error


def states(reply: InstanceResponse) -> list[StateInfo]:
    """Return the states of a response. Raises AttemptFailedError and ClientError."""
    try:
        return [_state(state) for state in content(reply, "states")["states"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidResponseError(reply.url, f"of a state, {error}") from error


def _state(state: Mapping[str, Any]) -> StateInfo:
    keys = None if state["keys"] is None else int(state["keys"])
    window, every = (_duration(state.get(name)) for name in ("window_s", "every_s"))
    return StateInfo(state["name"], len(state["partitions"]), keys, int(state["lag"]["records"]), state, window, every)


def _duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
