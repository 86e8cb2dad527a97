"""The decision on one key: an answer or a problem, from what the store holds and how this instance stands to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster.routing import Role
from services.query.lookup.problem import RETRY_AFTER_S, Problem

if TYPE_CHECKING:
    from services.query.cluster.routing import Standing
    from services.query.store.entry import Entry

LAST_MS = 253_402_300_799_999
"""The end of the year 9999: no later time can be written."""


class VersionReference(NamedTuple):
    """A version of a key that a reader names: of a life and an epoch where it said which, else of the present ones.

    Lives are in milliseconds since 1970.
    """

    life: int | None
    epoch: int | None
    version: int

    def within(self, latest: Entry) -> tuple[int, int, int]:
        """The whole order, of a key whose latest entry this is."""
        life = latest.life if self.life is None else self.life
        return life, latest.epoch if self.epoch is None else self.epoch, self.version

    def reached(self, entry: Entry) -> bool:
        """Whether the entry is at least as late."""
        return entry.order >= self.within(entry)


class Conditions(NamedTuple):
    """What a request wants beyond the key: If-None-Match, min_version, as_of, and the offset of min_offset."""

    none_match: str | None = None
    at_least: VersionReference | None = None
    as_of: VersionReference | None = None
    event_offset: int | None = None


class StoredKey(NamedTuple):
    """What the store says of a key: its latest entry and whether its life has ended, and the entry that is asked for.

    `since` is the beginning of the earliest life that is remembered, in milliseconds since 1970; 0 without lives.
    `event_offset` is the largest offset of the events that the latest entry has merged, if a condition names an offset.
    """

    latest: Entry | None
    ended: bool
    asked: Entry | None
    since: int
    event_offset: int | None = None


class FoundEntry(NamedTuple):
    """The answer. `unchanged`: the client has it already."""

    entry: Entry
    unchanged: bool


NO_CONDITIONS = Conditions()


def decide(known: StoredKey, standing: Standing, conditions: Conditions) -> FoundEntry | Problem:
    """What the client is told. Only who has all that an earlier owner can have shown answers from its store."""
    if standing.role is Role.ELSEWHERE:
        return Problem("elsewhere", "Ask the instance that /v1/instances names for the key's partition")
    if standing.role is Role.CATCHING_UP:
        return Problem("catching_up", f"{standing.lag} records are still to be read", retry_after=RETRY_AFTER_S)
    if conditions.at_least and not (known.latest and conditions.at_least.reached(known.latest)):
        return _behind(known.latest)
    if conditions.event_offset is not None and not _has_merged(known, conditions.event_offset):
        return _event_behind(known)
    if known.latest is None:
        return _never_seen(known.since)
    return _expired(known.latest) if known.ended else _shown(known.latest, known.asked, conditions.none_match)


def iso(milliseconds: int) -> str:
    """A time since 1970, as ISO 8601 in UTC."""
    return (
        datetime.fromtimestamp(min(milliseconds, LAST_MS) / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def _never_seen(since: int) -> Problem:
    if not since:
        return Problem("never_seen", "No record of this key was read, or the last one removed it")
    told = iso(since)
    return Problem("never_seen", f"Windows that began since {told} are remembered", {"remembered_since": told})


def _behind(latest: Entry | None) -> Problem:
    told = latest.tag if latest else None
    detail = f"The latest version here is {told or 'none'}: ask again, or let wait= do that"
    return Problem("behind", detail, {"latest": told}, retry_after=RETRY_AFTER_S)


def _has_merged(known: StoredKey, event_offset: int) -> bool:
    return known.event_offset is not None and known.event_offset >= event_offset


def _event_behind(known: StoredKey) -> Problem:
    latest, offset = known.latest.tag if known.latest else None, known.event_offset
    merged = "No event is merged here" if offset is None else f"The latest event merged here has offset {offset}"
    detail = f"{merged}: ask again, or let wait= do that; look for a refused event in the dead letters"
    return Problem("behind", detail, {"latest": latest, "latest_offset": offset}, retry_after=RETRY_AFTER_S)


def _expired(entry: Entry) -> Problem:
    facts = {
        "epoch": entry.epoch,
        "version": entry.version,
        "window_start": iso(entry.life),
        "event_time": iso(entry.event_time),
    }
    return Problem("expired", f"The window that began at {iso(entry.life)} has expired", facts)


def _shown(latest: Entry, asked: Entry | None, none_match: str | None) -> FoundEntry | Problem:
    if asked is None:
        return Problem("version_not_kept", "The path …/versions tells which are", {"latest": latest.tag})
    return FoundEntry(asked, unchanged=_matches(none_match, asked.tag))


def _matches(none_match: str | None, tag: str) -> bool:
    """Whether If-None-Match names the tag; compared weakly, as RFC 9110 says."""
    if none_match is None:
        return False
    named = {one.strip().removeprefix("W/") for one in none_match.split(",")}
    return "*" in named or f'"{tag}"' in named
