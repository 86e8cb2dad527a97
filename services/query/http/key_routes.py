"""GET of one key: its present entry, an earlier version, or all versions that are kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from contracts.api.reads import KEY, VERSIONS, KeyParameters, VersionsParameters
from contracts.metrics import query as metrics
from services.query.http.key_responses import KeyResponses
from services.query.http.request_context import principal
from services.query.http.responses import JSON, HttpResponse
from services.query.http.retry import WAITED
from services.query.http.routes import route
from services.query.http.validation import key_of_request, milliseconds_at, parse_query
from services.query.lookup.decision import Conditions, FoundEntry
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.projection import parse_paths, project
from services.query.lookup.state_reader import EventPosition
from services.query.lookup.version_reference import parse_reference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.lookup.key_waiters import KeyWaiters
    from services.query.lookup.state_reader import LookupResult, StateReader, StateReaders

UNTIL = web.RequestKey("until", float)
"""How long a request may wait, by the instance's clock."""


class KeyRoutes:
    """Answers requests about one key."""

    def __init__(
        self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder, waiters: KeyWaiters
    ) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder
        self._waiters = waiters
        instance = dependencies.settings.instance
        self._responses = {one.state.name: KeyResponses(one, instance) for one in readers.all()}

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(KEY, self.get), route(VERSIONS, self.get_versions)]

    async def get(self, request: web.Request) -> web.Response:
        """The entry of the key that meets the conditions of the request. Raises ProblemError."""
        reader, key, query = self._reader(request), key_of_request(request), parse_query(KeyParameters, request)
        if query.wait > (longest_s := self._dependencies.settings.max_wait.total_seconds()):
            raise ProblemError(Problem("bad_request", f"wait: at most {longest_s:g} seconds"))
        none_match, at = request.headers.get("If-None-Match"), milliseconds_at(query.at)
        conditions = Conditions(none_match, parse_reference(query.min_version), parse_reference(query.as_of), at=at)
        if query.min_offset is not None:
            event = EventPosition(*map(int, query.min_offset.split(":")))
            conditions = conditions._replace(event_offset=reader.event_offset(key, event))
        request.setdefault(UNTIL, self._dependencies.clock() + query.wait)  # a retry gets no more time
        found = await self._read(request, reader, key, conditions)
        if found.belongs_to_peer and self._forwarder.can_forward(request):
            return (await self._forward(request, reader, found.partition)).response()
        entry = _entry_of(reader, key, found)
        value = None if entry.unchanged else _select(entry.entry.value, query.fields)
        responses = self._responses[reader.state.name]
        return responses.found(key, entry, found.partition_status, self._dependencies.now(), value).response()

    async def get_versions(self, request: web.Request) -> web.Response:
        """All versions kept of the key's present window, the earliest first. Raises ProblemError."""
        reader, key, query = self._reader(request), key_of_request(request), parse_query(VersionsParameters, request)
        fields = query.fields
        found, versions = reader.read_versions(key, Conditions(at=milliseconds_at(query.at)))
        if found.belongs_to_peer and self._forwarder.can_forward(request):
            return (await self._forwarder.forward_read(request, reader.state.name, found.partition)).response()
        latest, partition_status = _entry_of(reader, key, found), found.partition_status
        encode, now = reader.encoder.encode, self._dependencies.now()
        answers = (encode(key, version, partition_status, now, _select(version.value, fields)) for version in versions)
        headers = self._responses[reader.state.name].headers(
            latest.etag, partition_status.role.value, str(partition_status.lag)
        )
        body = b'{"versions":[%b]}' % b",".join(answers)
        return HttpResponse(200, (("Content-Type", JSON), *headers), body).response()

    def _reader(self, request: web.Request) -> StateReader:
        """The reader of the state in the path, if the principal may read the key. Raises ProblemError."""
        sender = principal(request)
        reader = self._readers.get(request.match_info["name"], sender)
        sender.check(reader.state.name, key_of_request(request))
        self._dependencies.counts.add(metrics.KEYS, reader.state.name)
        return reader

    async def _read(self, request: web.Request, reader: StateReader, key: str, conditions: Conditions) -> LookupResult:
        """The result once the conditions are met, the time is over, or another instance owns the key."""
        while True:
            found = reader.read(key, conditions)
            left_s = request[UNTIL] - self._dependencies.clock()
            if left_s <= 0 or not _may_change(found):
                return found
            is_here = partial(reader.is_answered_here, found.partition)
            await self._waiters.wait(reader.state.name, key, left_s, is_here)
            request[WAITED] = self._dependencies.clock()

    async def _forward(self, request: web.Request, reader: StateReader, partition: int) -> HttpResponse:
        """The owner's response; the owner waits in place of this instance. Raises ProblemError (503)."""
        left_s = max(0.0, request[UNTIL] - self._dependencies.clock())
        try:
            return await self._forwarder.forward_read(request, reader.state.name, partition, left_s)
        finally:
            if left_s:  # once: an instance that is cut off must not use up the client's timeout
                request.setdefault(WAITED, min(self._dependencies.clock(), request[UNTIL]))


def _entry_of(reader: StateReader, key: str, found: LookupResult) -> FoundEntry:
    """The entry. Raises ProblemError with the problem that was found in its place."""
    if isinstance(found.outcome, Problem):
        raise ProblemError(reader.encoder.describe(key, found.outcome, found.partition_status))
    return found.outcome


def _select(value: bytes, fields: str | None) -> bytes | None:
    """The requested part of the value; None for all of it."""
    return None if fields is None else project(value, parse_paths(fields))


def _may_change(found: LookupResult) -> bool:
    """Whether the next record of the key may meet the conditions."""
    outcome = found.outcome
    return outcome.unchanged if isinstance(outcome, FoundEntry) else outcome.kind == "behind"
