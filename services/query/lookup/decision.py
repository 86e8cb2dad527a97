"""The decision on one key: an entry or a problem, from what the store has and from the role of this instance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from contracts.records.record import LATEST_MS
from contracts.records.state_record import FIRST_US, US_PER_MS
from services.query.cluster import Role
from services.query.lookup.problems import RETRY_AFTER_S, Problem
from services.query.lookup.version_reference import closed_tag
from services.query.store.entry import make_tuple

if TYPE_CHECKING:
    from services.query.cluster import PartitionStatus
    from services.query.lookup.version_reference import VersionReference
    from services.query.store import Entry

FIRST_MS = FIRST_US // US_PER_MS
"""The beginning of the year 1: ISO 8601 with four digits expresses no earlier time, and none after LATEST_MS."""


class Conditions(NamedTuple):
    """The conditions of a request: If-None-Match, min_version, as_of, the offset of min_offset, and `at`.

    `at` is a time in milliseconds since 1970: the newest window that contains it is read, in place of the newest one.
    """

    none_match: str | None = None
    at_least: VersionReference | None = None
    as_of: VersionReference | None = None
    event_offset: int | None = None
    at: int | None = None


class StoredKey(NamedTuple):
    """A key as the store has it: its latest entry, whether that has expired, and the entry that was requested.

    `remembered_since` is the start of the oldest window that is remembered, in milliseconds since 1970; 0 without
    windows. `event_offset` is the largest offset of an event merged into the latest entry, if a condition needs it.
    `is_closed`: no later version of the entry's window will come.
    """

    latest: Entry | None
    is_expired: bool
    requested: Entry | None
    remembered_since: int
    event_offset: int | None = None
    is_closed: bool = False


class FoundEntry(NamedTuple):
    """The entry that answers the request. `unchanged`: the client has it already. `is_closed`: its window is closed."""

    entry: Entry
    unchanged: bool
    is_closed: bool = False

    @property
    def etag(self) -> str:
        """The tag of the entry, which differs once its window is closed: the answer reports that."""
        return closed_tag(self.entry.tag) if self.is_closed else self.entry.tag


NO_CONDITIONS = Conditions()


def decide(stored: StoredKey, partition_status: PartitionStatus, conditions: Conditions) -> FoundEntry | Problem:
    """The entry or the problem. Only an instance that has all records that any owner served answers from its store."""
    if (problem := unavailable(partition_status)) is not None:
        return problem
    if conditions.at_least and not (stored.latest and conditions.at_least.is_reached_by(stored.latest)):
        return _version_behind(stored.latest)
    if conditions.event_offset is not None and not _has_merged(stored, conditions.event_offset):
        return _event_behind(stored)
    if stored.latest is None:
        return _never_seen(stored.remembered_since)
    return _expired(stored.latest) if stored.is_expired else _found(stored, stored.latest, conditions.none_match)


def unavailable(partition_status: PartitionStatus) -> Problem | None:
    """Why this instance does not answer for a partition; None if it does."""
    if partition_status.role is Role.ELSEWHERE:
        return Problem("elsewhere", "Send the request to the owner of the key's partition: see /v1/instances")
    if partition_status.role is Role.CATCHING_UP:
        return Problem("catching_up", f"{partition_status.lag} records are not read yet", retry_after=RETRY_AFTER_S)
    return None


def iso(milliseconds: int) -> str:
    """A time since 1970, as ISO 8601 in UTC; of an earlier or later one than that expresses, the first or the last."""
    time = datetime.fromtimestamp(min(max(milliseconds, FIRST_MS), LATEST_MS) / 1000, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _never_seen(remembered_since: int) -> Problem:
    if not remembered_since:
        return Problem("never_seen", "No record of this key was read, or a tombstone removed it")
    since = iso(remembered_since)
    return Problem("never_seen", f"Windows that began since {since} are remembered", {"remembered_since": since})


def _version_behind(latest: Entry | None) -> Problem:
    tag = latest.tag if latest else None
    detail = f"The latest version here is {tag or 'none'}: repeat the request, or add wait="
    return Problem("behind", detail, {"latest": tag}, retry_after=RETRY_AFTER_S)


def _has_merged(stored: StoredKey, event_offset: int) -> bool:
    return stored.event_offset is not None and stored.event_offset >= event_offset


def _event_behind(stored: StoredKey) -> Problem:
    latest, offset = stored.latest.tag if stored.latest else None, stored.event_offset
    merged = "No event is merged here" if offset is None else f"The latest event merged here has offset {offset}"
    detail = f"{merged}: repeat the request, or add wait=. A rejected event is in the dead letters"
    return Problem("behind", detail, {"latest": latest, "latest_offset": offset}, retry_after=RETRY_AFTER_S)


def _expired(entry: Entry) -> Problem:
    start = iso(entry.order[0])
    facts = {
        "epoch": entry.epoch,
        "version": entry.version,
        "window_start": start,
        "event_time": iso(entry.event_time),
    }
    return Problem("expired", f"The window that began at {start} has expired", facts)


def _found(stored: StoredKey, latest: Entry, none_match: str | None) -> FoundEntry | Problem:
    if stored.requested is None:
        return Problem(
            "version_not_kept", "The path …/versions lists the versions that are kept", {"latest": latest.tag}
        )
    found = make_tuple(FoundEntry, (stored.requested, False, stored.is_closed))
    return found if none_match is None else found._replace(unchanged=_matches(none_match, found.etag))


def _matches(none_match: str, tag: str) -> bool:
    """Whether If-None-Match contains the tag, by weak comparison (RFC 9110)."""
    tags = {one.strip().removeprefix("W/") for one in none_match.split(",")}
    return "*" in tags or f'"{tag}"' in tags
