"""GET of one key: its present entry, an earlier version, or all versions that are kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from contracts.api.reads import KEY, VERSIONS, KeyParameters, VersionsParameters
from contracts.metrics import query as metrics
from services.query.cluster import Role
from services.query.http.forwarding import PartitionMovedError
from services.query.http.requests import HttpRequest, respond
from services.query.http.responses import JSON, SECURITY, HttpResponse, header_lines
from services.query.http.routes import route
from services.query.http.validation import milliseconds_at
from services.query.lookup.decision import NO_CONDITIONS, Conditions, FoundEntry
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.projection import parse_paths, project
from services.query.lookup.state_reader import ANSWERING_ROLES, EventPosition
from services.query.lookup.version_reference import parse_reference

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from typing import Any

    from aiohttp import web

    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.lookup.key_waiters import KeyWaiters
    from services.query.lookup.state_reader import LookupResult, StateReader, StateReaders


MOVE_S = 1.0
"""The time within which the next owner of a partition that has moved answers, beyond the patience of a retry."""
CONTENT_TYPE = header_lines(("Content-Type", JSON))


class KeyRoutes:
    """Answers requests about one key."""

    def __init__(
        self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder, waiters: KeyWaiters
    ) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder
        self._waiters = waiters
        self._headers = {
            (reader.state.name, role): self._headers_of(reader, role) for reader in readers.all() for role in Role
        }

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(KEY, self.get), route(VERSIONS, self.get_versions)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The entry of the key that meets the conditions of the request. Raises ProblemError."""
        reader, query = self._reader(request), request.parse(KeyParameters)
        if query.wait > (longest_s := self._dependencies.settings.max_wait.total_seconds()):
            raise ProblemError(Problem("bad_request", f"wait: at most {longest_s:g} seconds"))
        at = milliseconds_at(query.at)
        references = parse_reference(query.min_version), parse_reference(query.as_of)
        conditions = Conditions(request.headers.get("If-None-Match"), *references, at=at)
        if query.min_offset is not None:
            event = EventPosition(*map(int, query.min_offset.split(":")))
            conditions = conditions._replace(event_offset=reader.event_offset(request.key, event))
        if request.wait_until is None:
            request.wait_until = self._dependencies.clock() + query.wait
        found = await self._read(request, request.wait_until, reader, conditions)
        if found.belongs_to_peer and self._forwarder.can_forward(request):
            return await self._forward(request, request.wait_until, found.partition)
        return self._respond(reader, request.key, found, query.fields)

    def get_now(self, request: HttpRequest) -> HttpResponse | Coroutine[Any, Any, HttpResponse]:
        """The same without a query; a coroutine if the request must be forwarded or retried. Raises ProblemError."""
        reader = self._readers.get(request.name, request.sender, request.key)
        none_match = request.headers.get("If-None-Match")
        found = reader.read(request.key, NO_CONDITIONS if none_match is None else Conditions(none_match))
        if found.partition_status.role not in ANSWERING_ROLES:
            return respond(self.get, request)
        self._dependencies.counts.add(metrics.KEYS, request.name)
        return self._respond(reader, request.key, found)

    async def get_versions(self, request: HttpRequest) -> HttpResponse:
        """All versions kept of the key's present window, the earliest first. Raises ProblemError."""
        reader, query = self._reader(request), request.parse(VersionsParameters)
        found, versions = reader.read_versions(request.key, Conditions(at=milliseconds_at(query.at)))
        latest, status = await self._forwarder.outcome(request, reader, found), found.partition_status
        if isinstance(latest, HttpResponse):
            return latest
        paths = None if query.fields is None else parse_paths(query.fields)
        encode, now = partial(reader.encoder.encode, request.key), self._dependencies.now()
        values = (None if paths is None else project(version.value, paths) for version in versions)
        answers = (encode(version, status, now, value) for version, value in zip(versions, values, strict=True))
        headers = self._headers[reader.state.name, status.role] % (latest.etag, status.lag)
        return HttpResponse(200, CONTENT_TYPE + headers, b'{"versions":[%b]}' % b",".join(answers))

    def _reader(self, request: HttpRequest) -> StateReader:
        """The reader of the state, if the sender may read the key. Raises ProblemError."""
        reader = self._readers.get(request.name, request.sender, request.key)
        self._dependencies.counts.add(metrics.KEYS, request.name)
        return reader

    async def _read(
        self, request: HttpRequest, until: float, reader: StateReader, conditions: Conditions
    ) -> LookupResult:
        """The result once the conditions are met, the time is over, or another instance owns the key."""
        while True:
            found = reader.read(request.key, conditions)
            left_s = until - self._dependencies.clock()
            if left_s <= 0 or not _may_change(found):
                return found
            is_here = partial(reader.is_answered_here, found.partition)
            await self._waiters.wait(request.name, request.key, left_s, is_here)
            request.retries.waited(self._dependencies.clock())

    async def _forward(self, request: HttpRequest, until: float, partition: int) -> HttpResponse:
        """The owner's response; the owner waits in place of this instance. Raises ProblemError (503)."""
        left_s = max(0.0, until - self._dependencies.clock())
        try:
            return await self._forwarder.forward_read(request, partition, left_s)
        except PartitionMovedError:  # its next owner may need a moment
            request.retries.waited(min(self._dependencies.clock() + MOVE_S, until))
            raise
        finally:
            if left_s and not request.retries.has_waited:  # an instance that is cut off must not use up the patience
                request.retries.waited(min(self._dependencies.clock(), until))

    def _respond(self, reader: StateReader, key: str, found: LookupResult, fields: str | None = None) -> HttpResponse:
        """200 with the entry, or 304. Raises ProblemError with the problem that was found in its place."""
        outcome, status = reader.outcome(key, found), found.partition_status
        headers = self._headers[reader.state.name, status.role] % (outcome.etag, status.lag)
        if outcome.unchanged:
            return HttpResponse(304, headers, b"")
        value = None if fields is None else project(outcome.entry.value, parse_paths(fields))
        body = reader.encoder.encode(key, outcome.entry, status, self._dependencies.now(), value)
        return HttpResponse(200, CONTENT_TYPE + headers, body)

    def _headers_of(self, reader: StateReader, role: Role) -> str:
        """The headers of a response about a key in this role, to be filled with the tag and the lag."""
        return header_lines(
            ("ETag", '"%s"'),
            ("Cache-Control", reader.cache_control),
            ("Stateloop-Role", role.value),
            ("Stateloop-Lag", "%d"),
            ("Stateloop-Instance", self._dependencies.settings.instance.replace("%", "%%")),
            *SECURITY,
        )


def _may_change(found: LookupResult) -> bool:
    """Whether the next record of the key may meet the conditions."""
    outcome = found.outcome
    return outcome.unchanged if isinstance(outcome, FoundEntry) else outcome.kind == "behind"
