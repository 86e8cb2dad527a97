"""A named state for tests."""

from __future__ import annotations

from datetime import timedelta

import orjson

from contracts.model.named_state import NamedState, QueryOptions
from services.query.store import Entry, Update

LIFETIME = 100
REMEMBER = 60
HISTORY = 3
INDEXES = ("state.status", "state.gate")


def named(  # noqa: PLR0913  # each has a default
    *,
    lifetime: int | None = LIFETIME,
    history: int = HISTORY,
    indexes: tuple[str, ...] = INDEXES,
    name: str = "flights",
    topic: str = "snapshots",
    silence: bool = False,
) -> NamedState:
    """A state whose windows last some milliseconds."""
    return NamedState(
        name=name,
        topic=topic,
        schema={},
        partitions=2,
        window_start=None if lifetime is None else "first_seen",
        lifetime=None if lifetime is None else timedelta(milliseconds=lifetime),
        query=QueryOptions(
            history=history, indexes=indexes, remember=timedelta(milliseconds=REMEMBER), silence=silence
        ),
    )


def update(key: str, window_start: int, version: int, *, epoch: int = 0, partition: int = 0, **state: object) -> Update:
    """Return the update of a record, whose offset and event time follow from its version."""
    value = orjson.dumps({"epoch": epoch, "version": version, "state": state})
    return Update(
        key,
        partition,
        abs(version) % 1000,
        Entry(window_start, epoch, version, 700 * (version * 3 % 5) + epoch, partition, abs(version) % 1000, value),
    )


def removal(key: str, *, partition: int = 0, window_start: int | None = None) -> Update:
    """Return the update of a tombstone, of one window or of the key."""
    return Update(key, partition, 0, None, window_start)
