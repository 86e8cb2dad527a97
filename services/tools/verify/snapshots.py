"""Reads the newest snapshot of each window of some keys from the topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from contracts.wire import decode_snapshot
from contracts.wire.window_key import parse_window_key
from services.runtime.kafka.reader import stored_records
from services.tools.verify.comparison import Stored, StoredSnapshots

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contracts.records.record import Record
    from services.tools.verify.comparison import Subject

NAME = "topic"
NEVER = datetime.min.replace(tzinfo=UTC)


class KeyChoice(Protocol):
    """Chooses keys."""

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the sample, of all offered ones."""

    def offer(self, key: str) -> bool:
        """Return whether the key is chosen now."""


@dataclass(frozen=True)
class TopicContent:
    """The chosen keys' snapshots, and the start of the newest window of any key."""

    stored: StoredSnapshots
    newest_window: datetime


def topic_content(client: Mapping[str, str], topic: str, keys: KeyChoice) -> TopicContent:
    """Read the topic from its start to its current end offsets. Raises TopicReadError."""
    return newest_of(stored_records(client, "verify", topic), keys)


def newest_of(records: Iterable[Record], keys: KeyChoice) -> TopicContent:
    """Return the newest snapshot of each window of the chosen keys. A record without value removes its window.

    Of two records of one version the first counts, as for every reader.
    """
    by_window: dict[Subject, Stored] = {}
    newest = NEVER
    for record in records:
        try:
            key, start = parse_window_key(record.key or b"")
            newest = max(newest, start)
            if not keys.offer(key):
                continue
            if not record.value:
                by_window.pop((key, start), None)
                continue
            stored = Stored(decode_snapshot(record.value), record.timestamp)
        except ValueError:  # every reader skips it
            continue
        known = by_window.get((key, start))
        if known is None or known.position < stored.position:
            by_window[key, start] = stored
    chosen = keys.keys
    return TopicContent(
        StoredSnapshots(NAME, {window: stored for window, stored in by_window.items() if window[0] in chosen}), newest
    )
