"""The decision on one key: an answer or a problem, from what the store holds and how this instance stands to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from services.query.api.problems import AGAIN_S, Problem
from services.query.roles import Role

if TYPE_CHECKING:
    from services.query.entry import Entry
    from services.query.roles import Standing

LAST_MS = 253_402_300_799_999
"""The end of the year 9999: no later time can be written."""


class Order(NamedTuple):
    """What a reader has seen of a key: a version, of a life where it said which (in milliseconds since 1970)."""

    life: int | None
    version: int

    def reached(self, entry: Entry) -> bool:
        """Whether the entry is at least as late. Without a life, the version is one of the entry's life."""
        if self.life is None:
            return entry.version >= self.version
        return entry.order >= (self.life, self.version)


class Conditions(NamedTuple):
    """What a request wants beyond the key: If-None-Match, min_version, as_of."""

    none_match: str | None = None
    at_least: Order | None = None
    as_of: int | None = None


class Known(NamedTuple):
    """What the store says of a key: its latest entry and whether its life has ended, and the entry that is asked for.

    `since` is the beginning of the earliest life that is remembered, in milliseconds since 1970; 0 without lives.
    """

    latest: Entry | None
    ended: bool
    asked: Entry | None
    since: int


class Found(NamedTuple):
    """The answer. `unchanged`: the client has it already."""

    entry: Entry
    unchanged: bool


PLAIN = Conditions()


def decided(known: Known, standing: Standing, conditions: Conditions) -> Found | Problem:
    """What the client is told. Only who has all that an earlier owner can have shown answers from its store."""
    if standing.role is Role.ELSEWHERE:
        return Problem("elsewhere", "Ask the instance that /v1/instances names for the key's partition")
    if standing.role is Role.CATCHING_UP:
        return Problem("catching_up", f"{standing.lag} records are still to be read", retry_after=AGAIN_S)
    if conditions.at_least and not (known.latest and conditions.at_least.reached(known.latest)):
        return _behind(known.latest)
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
    return Problem("never_seen", f"Lives that began since {told} are remembered", {"remembered_since": told})


def _behind(latest: Entry | None) -> Problem:
    told = latest.tag if latest else None
    detail = f"The latest version here is {told or 'none'}: ask again, or let wait= do that"
    return Problem("behind", detail, {"latest": told}, retry_after=AGAIN_S)


def _expired(entry: Entry) -> Problem:
    facts = {"version": entry.version, "life": iso(entry.life), "event_time": iso(entry.event_time)}
    return Problem("expired", f"The life that began at {iso(entry.life)} is over", facts)


def _shown(latest: Entry, asked: Entry | None, none_match: str | None) -> Found | Problem:
    if asked is None:
        return Problem("version_not_kept", "The path …/versions tells which are", {"latest": latest.version})
    return Found(asked, unchanged=_matches(none_match, asked.tag))


def _matches(none_match: str | None, tag: str) -> bool:
    """Whether If-None-Match names the tag; compared weakly, as RFC 9110 says."""
    if none_match is None:
        return False
    named = {one.strip().removeprefix("W/") for one in none_match.split(",")}
    return "*" in named or f'"{tag}"' in named
