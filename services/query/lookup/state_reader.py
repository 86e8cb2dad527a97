"""One named state as this instance holds it: what reads of its keys go through, whichever way they came."""

from __future__ import annotations

from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from contracts.wire.partition import partition
from services.query.cluster.routing import Role
from services.query.lookup.answer_encoder import AnswerEncoder, filled
from services.query.lookup.decision import NO_CONDITIONS, Conditions, FoundEntry, StoredKey, decide
from services.query.lookup.problem import Problem, ProblemError
from services.query.lookup.projection import integer_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.model.named_state import NamedState
    from services.query.cluster.routing import Standing
    from services.query.dependencies import Parts
    from services.query.http.parameters import EventPosition
    from services.query.lookup.authentication import Principal
    from services.query.store.entry import Entry

ANSWERING_ROLES = (Role.OWNER, Role.STANDBY)
_MS = timedelta(milliseconds=1)


class LookupResult(NamedTuple):
    """What a look into the store gave, and how this instance stands to the key's partition."""

    outcome: FoundEntry | Problem
    standing: Standing
    partition: int


class StateReader:
    """A state with its store, and the way that answers about it are written."""

    def __init__(self, state: NamedState, parts: Parts) -> None:
        self.state = state
        self.store = parts.stores[state.name]
        self.form = AnswerEncoder(state, parts.settings.instance)
        self._standing = partial(parts.roles.standing, state.name)
        self._misplaced = parts.misplaced
        self._event_offset = None if state.event_offset is None else state.event_offset.split(".")
        lifetime, asked = state.lifetime, state.query
        remember = asked.remember if asked.remember is not None else lifetime
        self._remembered = None if lifetime is None or remember is None else round((lifetime + remember) / _MS)

    def event_offset(self, key: str, event: EventPosition) -> int:
        """The offset of an event of this key. Raises ProblemError (400) where no record can tell that it was merged."""
        if self._event_offset is None:
            detail = f"min_offset: the records of {self.state.name!r} have no offset of an event. Write min_version"
            raise ProblemError(Problem("bad_request", detail))
        if event.partition != (own := partition(key.encode(), self.state.partitions)):
            detail = f"min_offset: an event of this key is in partition {own} (murmur2), not in {event.partition}"
            raise ProblemError(Problem("bad_request", detail))
        return event.offset

    def look(self, key: str, conditions: Conditions) -> LookupResult:
        """What the client of this key is told now."""
        if conditions.as_of is not None:
            return self.kept(key, conditions)[0]
        latest = self.store.get(key)
        return self._judged(key, latest, latest, conditions, self._standing)

    def kept(self, key: str, conditions: Conditions = NO_CONDITIONS) -> tuple[LookupResult, Sequence[Entry]]:
        """The same, with all versions that are kept of its present life: both as they are at one moment."""
        versions = self.store.versions(key)
        latest = versions[-1] if versions else None
        asked = latest
        if latest is not None and conditions.as_of is not None:
            named = conditions.as_of.within(latest)
            asked = next((one for one in versions if one.order == named), None)
        return self._judged(key, latest, asked, conditions, self._standing), versions

    def looks(self, keys: Sequence[str]) -> list[LookupResult]:
        """The same of many keys, all at one moment."""
        standing, entries = cache(self._standing), self.store.gets(keys)
        return [
            self._judged(key, latest, latest, NO_CONDITIONS, standing)
            for key, latest in zip(keys, entries, strict=True)
        ]

    def told(self, keys: Sequence[str], now: int) -> list[bytes | LookupResult]:
        """The same of many keys, as JSON where it is what the store has: nearly always, so that is the shortest way."""
        standing, entries, living = cache(self._standing), self.store.gets(keys), self.store.living_since()
        blank = cache(lambda number: self._blank(number, standing(number)))
        found: list[bytes | LookupResult] = []
        for key, entry in zip(keys, entries, strict=True):
            if entry is not None and entry.life >= living and (form := blank(entry.partition)) is not None:
                found.append(filled(form, key, entry, now))
            else:
                found.append(self._judged(key, entry, entry, NO_CONDITIONS, standing))
        return found

    def _blank(self, partition: int, standing: Standing) -> bytes | None:
        """What is filled by entries of the partition that live; None where they are not simply shown."""
        return self.form.blank(partition, standing) if standing.role in ANSWERING_ROLES else None

    def _judged(
        self,
        key: str,
        latest: Entry | None,
        asked: Entry | None,
        conditions: Conditions,
        standing_of: Callable[[int], Standing],
    ) -> LookupResult:
        """What is said of what was read, by how this instance stands now: after it was read, not before."""
        number = partition(key.encode(), self.state.partitions) if latest is None else latest.partition
        standing = standing_of(number)
        ended = latest is not None and self.store.ended(latest)
        since = self.since() if latest is None else 0
        merged = None if conditions.event_offset is None else self._merged(latest)
        outcome = decide(StoredKey(latest, ended, asked, since, merged), standing, conditions)
        if latest is None and self._misplaced.get(self.state.name) and isinstance(outcome, Problem):
            outcome = self._unless_misplaced(outcome)
        return LookupResult(outcome, standing, number)

    def _merged(self, latest: Entry | None) -> int | None:
        """The largest offset of the events that the entry has merged: read from its value, for few requests want it."""
        if latest is None or self._event_offset is None:
            return None
        return integer_at(latest.value, self._event_offset)

    def _unless_misplaced(self, problem: Problem) -> Problem:
        """Who does not have all partitions does not know whether a key is not there, or is where it should not be."""
        if problem.kind != "never_seen" or all(self.is_here(one) for one in range(self.state.partitions)):
            return problem
        return Problem("misplaced", f"Write {self.state.topic!r} with murmur2_random: the service's log says more")

    def is_here(self, partition: int) -> bool:
        """Whether this instance answers for the partition now."""
        return self._standing(partition).role in ANSWERING_ROLES

    def since(self) -> int:
        """The beginning of the earliest life that is remembered, in milliseconds since 1970; 0 if all are."""
        return 0 if self._remembered is None else max(0, self.store.watermark() - self._remembered)


class StateReaders:
    """All states of an instance."""

    def __init__(self, parts: Parts) -> None:
        self._held = {name: StateReader(state, parts) for name, state in parts.states.items()}

    def held(self, name: str, who: Principal) -> StateReader:
        """The state of this name, for this holder. Raises ProblemError.

        The scope is checked first, so that a state beyond it is answered like one that does not exist.
        """
        who.check(name)
        found = self._held.get(name)
        if found is None:
            known = ", ".join(one for one in self._held if who.reads(one)) or "none"
            raise ProblemError(Problem("unknown_state", f"These can be asked: {known}", {"state": name}))
        return found

    def all(self) -> list[StateReader]:
        """Each of them, in the order of declaration."""
        return list(self._held.values())
