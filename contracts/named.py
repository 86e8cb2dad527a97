"""Named states: what can be asked by name and key, and which topic it comes from."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from contracts.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import BaseModel

    from contracts.wire import Snapshot

NO_TIME = timedelta(0)
NAME = re.compile("[a-z][a-z0-9._-]{0,62}")
PATH = re.compile(r"[^.]+(\.[^.]+)*")


@dataclass(frozen=True)
class Asked:
    """How a state may be asked. Field paths are dotted, from the top of the record's value: `state.status`.

    `history` is how many versions of a key are kept, `indexes` the paths that one may filter by, `stale_after` for how
    long a reader may keep an answer, and `remember` how long an ended life is told from one never seen (its lifetime,
    where that is None).
    """

    history: int = 1
    indexes: tuple[str, ...] = ()
    stale_after: timedelta = NO_TIME
    remember: timedelta | None = None

    def __post_init__(self) -> None:
        if self.history < 1:
            raise DeclarationError(f"Asked(history={self.history})", "no version would be kept", "Write 1 or more")
        for path in self.indexes:
            if not PATH.fullmatch(path):
                raise DeclarationError(f"Asked(indexes={path!r})", "is no path", "Write one such as state.status")
        if self.stale_after < NO_TIME or (self.remember is not None and self.remember < NO_TIME):
            raise DeclarationError("Asked", "stale_after and remember must not be negative", "Write timedelta(…)")


@dataclass(frozen=True)
class Derived:
    """A state derived from the snapshots, by another key: of several devices, the one whose life began last counts.

    `of` is a pure function: of a snapshot, the keys that it says something of, and what. `lifetime` is how long after
    its device's life began a key is known; where it is None, as long as the device.
    """

    name: str
    model: type[BaseModel]
    of: Callable[[Snapshot], Iterable[tuple[str, BaseModel]]]
    lifetime: timedelta | None = None
    asked: Asked = Asked()


@dataclass(frozen=True)
class NamedState:
    """A keyed topic that can be asked. `life`, `version` and `event_time` are the paths of what orders its records.

    `key` is the path of a record's key in its value, for a topic that keeps several records of one; without it the
    record's own key is the key. A record is newer than another of its key if its life began later, or it did not and
    the version is greater. Without `life` all records of a key are of one life; without `version` the offset is the
    version; without `event_time` the record's timestamp is the event time. Without `lifetime` a key stays until a
    record without value removes it.
    """

    name: str
    topic: str
    schema: Mapping[str, Any] = field(compare=False, hash=False, repr=False)
    partitions: int
    key: str | None = None
    life: str | None = "first_seen"
    version: str | None = "version"
    event_time: str | None = "as_of"
    lifetime: timedelta | None = None
    grace: timedelta = NO_TIME
    asked: Asked = Asked()


def check_names(names: Iterable[str]) -> None:
    """Names are in URLs, and each names one state. Raises DeclarationError."""
    for name, count in Counter(names).items():
        if count > 1:
            raise DeclarationError(f"state {name!r}", "is declared twice", "Name each state once")
        if not NAME.fullmatch(name):
            write = "Write lower-case letters, digits, ., - and _, a letter first, 63 at most"
            raise DeclarationError(f"state {name!r}", "is no name for a URL", write)
