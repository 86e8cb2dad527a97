"""Named states: the states that can be queried by name and key, and their topics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from contracts.errors import DeclarationError
from contracts.model.function import check_function
from contracts.types.declaration import Declaration

if TYPE_CHECKING:
    from contracts.model.table import Table  # noqa: TC004  # a table has query options, so each needs the other

NO_TIME = timedelta(0)
CLOSED_WINDOWS = timedelta(days=1)
"""The default time for which closed windows can be read."""
NAME = re.compile("[a-z][a-z0-9._-]{0,62}")
PATH = re.compile(r"[^.]+(\.[^.]+)*")


@dataclass(frozen=True)
class QueryOptions(Declaration):
    """The options of queries of a state. Field paths are dotted, from the top of the record's value: `state.status`.

    The query service stores `history` versions of a key. `indexes` has the paths of fields that a query can filter by.
    A client may cache an answer for `stale_after`. An expired key is answered as expired for `remember` (by default
    the state's lifetime), and as never seen after that. Of a windowed state, closed windows are stored for `remember`
    (by default a day). With `silence`, the service indexes the keys by their event time: queries and watches can select
    those without a record for some time.
    """

    history: int = 1
    indexes: tuple[str, ...] = ()
    stale_after: timedelta = NO_TIME
    remember: timedelta | None = None
    silence: bool = False

    @property
    def closed_windows(self) -> timedelta:
        """The time for which a closed window of a windowed state can be read."""
        return CLOSED_WINDOWS if self.remember is None else self.remember

    def __post_init__(self) -> None:
        if self.history < 1:
            raise DeclarationError(
                f"QueryOptions(history={self.history})", "no version would be kept", "Write 1 or more"
            )
        for path in self.indexes:
            if not PATH.fullmatch(path):
                raise DeclarationError(
                    f"QueryOptions(indexes={path!r})", "is no path", "Write one such as state.status"
                )
        if self.stale_after < NO_TIME or (self.remember is not None and self.remember < NO_TIME):
            raise DeclarationError(
                "QueryOptions", "stale_after and remember must not be negative", "Write timedelta(…)"
            )


@dataclass(frozen=True)
class Derived(Declaration):
    """A state that is derived from the snapshots, under another key. Of several devices, the newest window counts.

    `of` is a pure function of a snapshot, and returns pairs of a key and its value. A key expires `lifetime` after the
    start of its device's window; by default that is the lifetime of the application's state. With `tables`, it is a
    function of a snapshot and of the values of these reference tables, by name and key; when a row changes, it is
    evaluated for all present states.
    """

    name: str
    model: type[BaseModel]
    of: Callable[..., Iterable[tuple[str, BaseModel]]]
    lifetime: timedelta | None = None
    query: QueryOptions = QueryOptions()
    tables: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        if self.tables:
            check_function(f"Derived({self.name!r}) with tables=", self.of, "snapshot", "tables")
        else:
            check_function(f"Derived({self.name!r}) without tables=", self.of, "snapshot")


@dataclass(frozen=True)
class CoverageField:
    """A field of a windowed state that lists the steps of its window with data, as the reducer Coverage publishes it.

    Its value is an array of half-open pairs of step numbers, counted from the start of the window.
    """

    path: str
    step: timedelta


@dataclass(frozen=True)
class NamedState(Declaration):
    """A keyed topic that can be queried. `window_start`, `epoch`, `version` and `event_time` are paths in its records.

    `key` is the path of the key in a record's value, for a topic with several records of one key; without it, the
    record's own key is used. Of two records of a key, the one with the greater (window_start, epoch, version) is newer.
    Without `window_start`, all records of a key are of one window; without `epoch`, or in a record that lacks it, the
    epoch is 0; without `version`, the offset is the version, or the number at `copied_from` in a record that has it;
    without `event_time`, the record's timestamp is the event time.
    Without `lifetime`, a key stays until a record without value removes it. `event_offset` is the path of the largest
    offset of the events that a record has merged; the events have the same keys, in a topic with the same number of
    partitions. `source` is the path of the name of what a record comes from, where several give one key a value: it
    orders records that are otherwise equal, in sinks.

    While partitions are being added, the topic may have more than `layout_topic`: keys are in those that both have.

    A key expires when a window starts more than `lifetime` after its own. With `expires_by_clock`, it also expires
    `lifetime` and `grace` after its window starts, by the clock, while no record comes: the times of the topic must
    be the present ones, not the times of a replay.
    """

    name: str
    topic: str
    schema: Mapping[str, Any] = field(compare=False, hash=False, repr=False)
    partitions: int
    key: str | None = None
    window_start: str | None = "first_seen"
    epoch: str | None = "epoch"
    version: str | None = "version"
    event_time: str | None = "as_of"
    event_offset: str | None = None
    source: str | None = None
    layout_topic: str | None = None
    lifetime: timedelta | None = None
    grace: timedelta = NO_TIME
    expires_by_clock: bool = False
    query: QueryOptions = QueryOptions()
    emits_closed: bool = False
    """Whether the job publishes a window once, when it is closed (`Emit.CLOSE`)."""
    windowed: bool = False
    """The record's own key is the `window_key` of `key`, so a record without value removes that window only."""
    window: timedelta | None = None
    """The size of the windows, where a key has several: then they are aligned to the clock. `lifetime` has it too."""
    every: timedelta | None = None
    """The time from the start of a window to the start of the next; less than `window` where windows overlap."""
    coverage: tuple[CoverageField, ...] = ()
    """The fields of a windowed state from which queries of coverage are answered."""
    copied_from: str | None = None
    """The path of the first offset, in a record that was copied to another partition."""


def check_names(names: Iterable[str]) -> None:
    """Names are in URLs, and each names one state. Raises DeclarationError."""
    for name, count in Counter(names).items():
        if count > 1:
            raise DeclarationError(f"state {name!r}", "is declared twice", "Name each state once")
        if not NAME.fullmatch(name):
            write = "Write lower-case letters, digits, ., - and _, a letter first, 63 at most"
            raise DeclarationError(f"state {name!r}", "is no name for a URL", write)
