"""Reads the keys of one state: from the entries of its store and the role of this instance."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from contracts.wire.partition import partition
from services.query.cluster import Role
from services.query.lookup.answer_encoder import AnswerEncoder
from services.query.lookup.decision import NO_CONDITIONS, Conditions, FoundEntry, StoredKey, decide, unavailable
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.projection import integer_at
from services.query.store.buckets import time_buckets
from services.query.store.entry import make_tuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contracts.model.named_state import NamedState
    from services.query.cluster import PartitionStatus
    from services.query.dependencies import Dependencies
    from services.query.lookup.authentication import Principal
    from services.query.store import Entry, Store

ANSWERING_ROLES = (Role.OWNER, Role.STANDBY)
Outcome = TypeVar("Outcome")


class EventPosition(NamedTuple):
    """The position of an event in its topic."""

    partition: int
    offset: int


class ReadResult(NamedTuple, Generic[Outcome]):
    """What was read of a key, or the problem, and what this instance is to the key's partition."""

    outcome: Outcome | Problem
    partition_status: PartitionStatus
    partition: int

    @property
    def belongs_to_peer(self) -> bool:
        """Whether another instance owns the key."""
        return isinstance(self.outcome, Problem) and self.outcome.kind == "elsewhere"


LookupResult: TypeAlias = "ReadResult[FoundEntry]"
"""The decision on one key."""


class WindowsRequest(NamedTuple):
    """The windows of a key that start in [start, end), in milliseconds since 1970; None: no bound."""

    start: int | None
    end: int | None
    newest_first: bool
    limit: int


class StateReader:
    """A state with its store and the encoder of its answers."""

    def __init__(self, state: NamedState, dependencies: Dependencies) -> None:
        self.state = state
        self.store = dependencies.stores[state.name]
        self._windows = None if state.window is None else self.store
        self.encoder = AnswerEncoder(state, dependencies.settings.instance, self.store)
        stale_after_s = round(state.query.stale_after.total_seconds())
        self.cache_control = f"max-age={stale_after_s}" if stale_after_s else "no-cache"
        self._partition_status = partial(dependencies.routing.partition_status, state.name)
        self._misplaced = dependencies.misplaced
        self._event_offset = None if state.event_offset is None else state.event_offset.split(".")
        self._remembered = time_buckets(state).remembered

    @property
    def windows(self) -> Store:
        """The store, for queries of windows. Raises ProblemError (400) in a state that is not windowed."""
        if self._windows is None:
            detail = f"{self.state.name!r} has one window of a key at a time: leave out the parameters of windows"
            raise ProblemError(Problem("bad_request", detail))
        return self._windows

    def event_offset(self, key: str, event: EventPosition) -> int:
        """The offset of an event of this key. Raises ProblemError (400) if the state or the key has no such event."""
        if self._event_offset is None:
            detail = f"min_offset: the records of {self.state.name!r} have no offset of an event. Write min_version"
            raise ProblemError(Problem("bad_request", detail))
        if event.partition != (own := partition(key.encode(), self.state.partitions)):
            detail = f"min_offset: an event of this key is in partition {own} (murmur2), not in {event.partition}"
            raise ProblemError(Problem("bad_request", detail))
        return event.offset

    def read(self, key: str, conditions: Conditions) -> LookupResult:
        """The entry of the key that meets the conditions, or the problem."""
        if conditions.as_of is not None:
            return self.read_versions(key, conditions)[0]
        latest = self._store_at(conditions.at).get(key, conditions.at)
        return self._decide(key, latest, latest, conditions, self._partition_status)

    def read_versions(self, key: str, conditions: Conditions = NO_CONDITIONS) -> tuple[LookupResult, Sequence[Entry]]:
        """The same, with all versions kept of the window that is read, from one snapshot of the store."""
        at = self._time_of(conditions)
        versions = self._store_at(at).versions(key, at)
        latest = versions[-1] if versions else None
        requested = latest
        if latest is not None and conditions.as_of is not None:
            order = conditions.as_of.resolve(latest)
            requested = next((version for version in versions if version.order == order), None)
        found = self._decide(key, latest, requested, conditions._replace(at=at), self._partition_status)
        return found, versions

    def read_many(self, keys: Sequence[str], at: int | None = None) -> list[LookupResult]:
        """The results of many keys, from one snapshot of the store."""
        partition_status, entries = cache(self._partition_status), self._store_at(at).get_many(keys, at)
        conditions = NO_CONDITIONS if at is None else Conditions(at=at)
        return [
            self._decide(key, latest, latest, conditions, partition_status)
            for key, latest in zip(keys, entries, strict=True)
        ]

    def encode_many(self, keys: Sequence[str], now: int, at: int | None = None) -> list[bytes | LookupResult]:
        """The same, as JSON where the entry is simply the answer: the fast path of batches."""
        partition_status, entries, living = (
            cache(self._partition_status),
            self._store_at(at).get_many(keys, at),
            self.store.oldest_live_window(),
        )
        conditions, fill = NO_CONDITIONS if at is None else Conditions(at=at), self.encoder.fill
        template_of = cache(lambda number: self._template(number, partition_status(number)))
        found: list[bytes | LookupResult] = []
        for key, entry in zip(keys, entries, strict=True):
            if (
                entry is not None
                and entry.window_start >= living
                and (template := template_of(entry.partition)) is not None
            ):
                found.append(fill(template, key, entry, now))
            else:
                found.append(self._decide(key, entry, entry, conditions, partition_status))
        return found

    def read_windows(self, key: str, request: WindowsRequest) -> ReadResult[Sequence[Entry]]:
        """The windows of the key."""
        entries = self.windows.windows(
            key,
            start=request.start,
            end=request.end,
            newest_first=request.newest_first,
            limit=request.limit,
        )
        number = partition(key.encode(), self.state.partitions)
        partition_status = self._partition_status(number)  # after the store, as in `_decide`
        return ReadResult(unavailable(partition_status) or entries, partition_status, number)

    def outcome(self, key: str, found: ReadResult[Outcome]) -> Outcome:
        """What was read of the key. Raises ProblemError with the problem that was found in its place."""
        if isinstance(found.outcome, Problem):
            raise ProblemError(self.encoder.describe(key, found.outcome, found.partition_status))
        return found.outcome

    def is_answered_here(self, partition: int) -> bool:
        """Whether this instance answers for the partition now."""
        return self._partition_status(partition).role in ANSWERING_ROLES

    def _store_at(self, time: int | None) -> Store:
        """The store, for a read of the newest window or of that at a time. Raises ProblemError (400)."""
        return self.store if time is None else self.windows

    def _time_of(self, conditions: Conditions) -> int | None:
        """The time of the window to read. In a windowed state, a reference to a version may name its window."""
        named = None if conditions.as_of is None or self._windows is None else conditions.as_of.window_start
        return conditions.at if named is None else named

    def _template(self, partition: int, partition_status: PartitionStatus) -> bytes | None:
        return self.encoder.template(partition, partition_status) if partition_status.role in ANSWERING_ROLES else None

    def _decide(
        self,
        key: str,
        latest: Entry | None,
        requested: Entry | None,
        conditions: Conditions,
        partition_status_of: Callable[[int], PartitionStatus],
    ) -> LookupResult:
        """The decision on a key that was read. The status of the partition must be read after the store."""
        number = partition(key.encode(), self.state.partitions) if latest is None else latest.partition
        partition_status = partition_status_of(number)
        is_expired = latest is not None and self.store.is_expired(latest)
        since = self._remembered_since() if latest is None else 0
        merged = None if conditions.event_offset is None else self._merged(latest)
        is_closed = self._windows is not None and latest is not None and not self._windows.is_open(latest.window_start)
        stored = make_tuple(StoredKey, (latest, is_expired, requested, since, merged, is_closed))
        outcome = decide(stored, partition_status, conditions)
        if conditions.at is not None and isinstance(outcome, Problem):
            outcome = self._unless_other_window(key, outcome)
        if latest is None and self._misplaced.get(self.state.name) and isinstance(outcome, Problem):
            outcome = self._unless_misplaced(outcome)
        return make_tuple(ReadResult, (outcome, partition_status, number))

    def _merged(self, latest: Entry | None) -> int | None:
        """The largest offset of the events merged into the entry. It is parsed on demand, for few requests need it."""
        if latest is None or self._event_offset is None:
            return None
        return integer_at(latest.value, self._event_offset)

    def _unless_other_window(self, key: str, problem: Problem) -> Problem:
        if problem.kind != "never_seen" or self.store.get(key) is None:
            return problem
        return Problem("no_window", "The path …/windows lists the windows of the key", problem.facts)

    def _unless_misplaced(self, problem: Problem) -> Problem:
        """An instance without all partitions cannot distinguish an unknown key from one in the wrong partition."""
        if problem.kind != "never_seen" or all(self.is_answered_here(one) for one in range(self.state.partitions)):
            return problem
        return Problem("misplaced", f"Write {self.state.topic!r} with murmur2_random: the log of the service has more")

    def _remembered_since(self) -> int:
        """The start of the oldest window that is remembered, in milliseconds since 1970; 0 if all are."""
        return max(0, self.store.watermark() - self._remembered) if self._remembered else 0


class StateReaders:
    """The readers of all states of this instance."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._readers = {name: StateReader(state, dependencies) for name, state in dependencies.states.items()}

    def get(self, name: str, principal: Principal, key: str | None = None) -> StateReader:
        """The reader of this state, which the principal may read, as the key or prefix. Raises ProblemError (403, 404).

        The scope is checked first, so that a state beyond it is answered like one that does not exist.
        """
        found = self._readers.get(name)
        if found is not None and key is not None and principal.reads_key(name, key):  # most requests
            return found
        principal.check(name)
        if found is None:
            known = ", ".join(state for state in self._readers if principal.reads(state)) or "none"
            raise ProblemError(Problem("unknown_state", f"The states are: {known}", {"state": name}))
        if key is not None:
            principal.check(name, key)
        return found

    def all(self) -> list[StateReader]:
        """All readers, in the order of declaration."""
        return list(self._readers.values())
