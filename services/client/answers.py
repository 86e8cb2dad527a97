"""The results of reads and watches, each with its own type, and their decoding from JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from contracts.errors import problem_of
from services.client.errors import ModelMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
Value = dict[str, Any]
Order = tuple[int, int, int]
"""The start of the window in milliseconds since 1970, the epoch, and the version."""


class Source(NamedTuple):
    """The record from which a result was read."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """The state of a key. `value` is the record as on the topic, or the requested model.

    `version` counts within `window_start` (None in a state without windows) and `epoch` (0 where records have none).
    `age` is since the event time; `lag` how many records the instance was behind. `window_end` and `is_open` are those
    of a windowed state, None in others; a later version of an open window may still come.
    """

    state: str
    key: str
    value: T
    epoch: int
    version: int
    window_start: datetime | None
    event_time: datetime
    age: timedelta
    source: Source
    lag: int
    role: str
    instance: str
    window_end: datetime | None = None
    is_open: bool | None = None

    @property
    def order(self) -> Order:
        """The order of versions of one key."""
        return milliseconds(self.window_start), self.epoch, self.version

    @property
    def tag(self) -> str:
        """The tag of this version, for min_version and as_of."""
        start, epoch, version = self.order
        return f"{start}.{epoch}.{version}" if start or epoch else str(version)


@dataclass(frozen=True, slots=True)
class NeverSeen:
    """The service has no record of the key. `facts` are the members of its problem."""

    state: str
    key: str
    facts: Mapping[str, Any]

    @property
    def window_start(self) -> datetime | None:
        """The window that was watched; None for the key as a whole."""
        return window_start(self.facts)


@dataclass(frozen=True, slots=True)
class NoWindow:
    """The key has windows, but none contains the requested time. `facts` are the members of the service's problem."""

    state: str
    key: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expired:
    """The key has expired. `facts` are the members of the service's problem."""

    state: str
    key: str
    facts: Mapping[str, Any]

    @property
    def window_start(self) -> datetime | None:
        """The start of the expired window; None where the answer lacks it."""
        return window_start(self.facts)

    @property
    def order(self) -> Order | None:
        """The order of the last version of the expired window; None where the answer lacks it."""
        start, epoch, version = self.window_start, self.facts.get("epoch", 0), self.facts.get("version")
        if start is None or type(epoch) is not int or type(version) is not int:
            return None
        return milliseconds(start), epoch, version


@dataclass(frozen=True, slots=True)
class Removed:
    """A tombstone removed the key, or this window of it. It may return."""

    state: str
    key: str
    window_start: datetime | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """The key, or this window of it, no longer matches the filter of the watch. It may return."""

    state: str
    key: str
    window_start: datetime | None = None


Answer: TypeAlias = Found[T] | NeverSeen | NoWindow | Expired
Update: TypeAlias = Found[T] | NeverSeen | Expired | Removed | Left
"""A change of a key."""
GONE: Mapping[str, Callable[[str, str, Mapping[str, Any]], Update[Any]]] = {
    "never_seen": NeverSeen,
    "expired": Expired,
    "removed": lambda state, key, facts: Removed(state, key, window_start(facts)),
    "left": lambda state, key, facts: Left(state, key, window_start(facts)),
}
"""The update in each kind of message about a key without a value."""


def found(body: Mapping[str, Any], read: Callable[[Any], T]) -> Found[T]:
    """Return the result in this JSON, its value decoded by `read`. Raises KeyError, TypeError or ValueError."""
    source = body["source"]
    return Found(
        state=body["state"],
        key=body["key"],
        value=read(body["value"]),
        epoch=_whole(body.get("epoch", 0)),  # releases before 0.2.0 name none
        version=_whole(body["version"]),
        window_start=_time(body["window_start"]),
        event_time=datetime.fromisoformat(body["event_time"]),
        age=timedelta(milliseconds=body["age_ms"]),
        source=Source(source["topic"], _whole(source["partition"]), _whole(source["offset"])),
        lag=_whole(body["lag"]["records"]),
        role=body["role"],
        instance=body["instance"],
        window_end=_time(body.get("window_end")),
        is_open=body.get("is_open"),
    )


def reader(state: str, key: str, model: type[Any] | None) -> Callable[[Any], Any]:
    """Return the function that decodes values of the key. It raises ModelMismatchError, and TypeError for no object."""

    def read(value: Any) -> Any:
        if model is None or not issubclass(model, BaseModel):
            if not isinstance(value, dict):
                raise TypeError("value is no object")
            return value
        try:
            return model.model_validate(value)
        except ValidationError as error:
            raise ModelMismatchError(state, key, model.__name__, first_error(error)) from error

    return read


def first_error(error: ValidationError) -> str:
    """Return the first reason, after the path of the value."""
    return problem_of(error.errors(include_url=False)[0])


def window_start(facts: Mapping[str, Any]) -> datetime | None:
    """Return the start of the window that these members name; None if they name none."""
    start = facts.get("window_start")
    try:
        return datetime.fromisoformat(start) if isinstance(start, str) else None
    except ValueError:
        return None


def milliseconds(window_start: datetime | None) -> int:
    """Return a time since 1970; 0 for None, as in orders of states without windows."""
    return round(window_start.timestamp() * 1000) if window_start else 0


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value
