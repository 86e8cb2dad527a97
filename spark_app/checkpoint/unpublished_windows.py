"""The windows of a state that its job merges, but does not publish, by the times at which they begin.

There are two kinds. A file in the folder of the generation stores them apart:

- The state is `missing` the first events of those that begin until a time. Another generation may have their events.
- With `Emit.CLOSE`, other generations have `closed` some, and each is published once. So a switch carries these to the
  next generation.
"""

import json
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from spark_app.checkpoint.commit_log import committed_watermark
from spark_app.checkpoint.folder import CheckpointFolder

FILE = "stateloop.first_window"
FIRST_COPY = f"{FILE}.copy"
"""The same content, written before: a crash leaves a part of one of the two at most."""
BEGINNING = -(1 << 53)
"""A time before each window, in milliseconds since 1970. As microseconds it is a long integer of Spark."""


class StartRange(NamedTuple):
    """The windows that begin after one time and until another one, in milliseconds since 1970."""

    after: int
    until: int


class UnpublishedWindows(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    missing: int = BEGINNING
    """The time until which the windows begin whose first events the state lacks, in milliseconds since 1970."""
    closed: tuple[StartRange, ...] = ()
    """The windows that other generations have published."""

    @property
    def ranges(self) -> tuple[StartRange, ...]:
        """The windows of both kinds."""
        return _union(StartRange(BEGINNING, self.missing), *self.closed)

    def has(self, start: datetime) -> bool:
        """Return whether a window that begins at this time is one of them."""
        time = start.timestamp() * 1000
        return time <= self.missing or any(after < time <= until for after, until in self.closed)


def stored_windows(folder: CheckpointFolder) -> UnpublishedWindows:
    """Return the windows that the job of a generation does not publish.

    An older file has one time for both kinds. Its windows count as both, as they did before.
    """
    content: Any = {}
    for name in (FIRST_COPY, FILE):
        with suppress(json.JSONDecodeError):
            content = json.loads(folder.read(name) or "")
    if isinstance(content, int):
        content = {"missing": content, "closed": [(BEGINNING, content)]}
    return UnpublishedWindows.model_validate(content)


def store_windows(folder: CheckpointFolder, windows: UnpublishedWindows) -> None:
    """Store the windows that the job of a generation does not publish. A crash leaves these, or those before."""
    for name in (FIRST_COPY, FILE):
        folder.overwrite(name, windows.model_dump_json())


def store_missing(folder: CheckpointFolder, until: int | None) -> None:
    """Store until when the windows begin whose first events the state lacks; None if it lacks none."""
    missing = BEGINNING if until is None else until
    store_windows(folder, stored_windows(folder).model_copy(update={"missing": missing}))


def carry_closed(folder: CheckpointFolder, active: CheckpointFolder) -> None:
    """Store what the active generation and others before it have closed in the folder of the next one."""
    now = stored_windows(active)
    closed = _union(*now.closed, StartRange(now.missing, _watermark(active)))
    store_windows(folder, stored_windows(folder).model_copy(update={"closed": closed}))


def over_until(folder: CheckpointFolder) -> int | None:
    """Return the time until which each window that begins is over for a generation, in milliseconds since 1970.

    Its watermark has passed them, or it does not publish them. None if there are none.
    """
    over = _union(StartRange(BEGINNING, _watermark(folder)), *stored_windows(folder).ranges)
    return over[0].until if over and over[0].after == BEGINNING else None


def _watermark(folder: CheckpointFolder) -> int:
    """Return the watermark of a generation: its job has published and dropped the windows that begin until then."""
    return committed_watermark(folder) or BEGINNING


def _union(*ranges: StartRange) -> tuple[StartRange, ...]:
    """Return the windows of all ranges, as ranges that do not touch, in their order."""
    union: list[StartRange] = []
    for after, until in sorted(ranges):
        if union and after <= union[-1].until:
            union[-1] = StartRange(union[-1].after, max(until, union[-1].until))
        elif after < until:
            union.append(StartRange(after, until))
    return tuple(union)
