"""GET of the coverage of a key: the intervals of a time range that have data, and those that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.api.windows import COVERAGE, CoverageParameters
from contracts.metrics import query as metrics
from services.query.http.responses import json_response
from services.query.http.routes import route
from services.query.http.validation import milliseconds_at
from services.query.lookup.coverage_reader import CoverageReader, CoverageRequest
from services.query.lookup.decision import NO_CONDITIONS, iso
from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from aiohttp import web

    from contracts.model.named_state import CoverageField
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.coverage_reader import CoveredRange
    from services.query.lookup.state_reader import StateReaders


class CoverageRoutes:
    """Answers requests for the coverage of a key."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(COVERAGE, self.get)]

    async def get(self, request: HttpRequest) -> HttpResponse:
        """The intervals of the range, or of its beginning if it has more windows than `limit`. Raises ProblemError."""
        key = request.key
        reader, query = self._readers.get(request.name, request.sender, key), request.parse(CoverageParameters)
        query = request.charge_page(query, self._dependencies.settings.max_page_keys, "windows")
        windows = CoverageReader(reader)
        field = windows.field(query.field)
        wanted = CoverageRequest(field, milliseconds_at(query.start), milliseconds_at(query.end), query.limit)
        self._dependencies.counts.add(metrics.KEYS, reader.state.name)
        found = reader.read(key, NO_CONDITIONS)
        if found.belongs_to_peer and self._forwarder.can_forward(request):
            return await self._forwarder.forward_read(request, found.partition)
        if isinstance(found.outcome, Problem):
            raise ProblemError(reader.encoder.describe(key, found.outcome, found.partition_status))
        covered = windows.read(key, found.outcome.entry, wanted, self._dependencies.now())
        facts = {
            "state": reader.state.name,
            "key": key,
            **_describe(field, covered),
            "lag": {"records": found.partition_status.lag},
            "role": found.partition_status.role,
            "instance": self._dependencies.settings.instance,
        }
        return json_response(facts)


def _describe(field: CoverageField, covered: CoveredRange) -> dict[str, Any]:
    return {
        "field": field.path,
        "step_s": field.step.total_seconds(),
        "from": iso(covered.start),
        "to": iso(covered.end),
        "next": None if covered.next is None else iso(covered.next),
        "final_until": iso(covered.final_until),
        "intervals": [{"kind": kind, "from": iso(start), "to": iso(end)} for kind, start, end in covered.intervals],
    }
