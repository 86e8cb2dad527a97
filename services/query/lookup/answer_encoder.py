"""How the answers about one state are written: what does not change is put together once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

from services.query.cluster.routing import Role
from services.query.http.responses import JSON, SECURITY, Headers, HttpResponse, problem_response
from services.query.lookup.decision import iso

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState
    from services.query.cluster.routing import Standing
    from services.query.lookup.decision import FoundEntry
    from services.query.lookup.problem import Problem
    from services.query.store.entry import Entry

ROLES = {role: role.value.encode() for role in Role}
SECONDS_KEPT = 100_000
REST = tuple(b".%03dZ" % milliseconds for milliseconds in range(1000))


class AnswerEncoder:
    """Of one state, as this instance answers about it. Ages are in milliseconds."""

    def __init__(self, state: NamedState, instance: str) -> None:
        self.state = state
        self._instance = instance
        name, topic, told = (orjson.dumps(one) for one in (state.name, state.topic, instance))
        self._body = (
            b'{"state":'
            + name
            + b',"key":%%b,"epoch":%%d,"version":%%d,"window_start":%%b,"event_time":"%%b","age_ms":%%d,'
            b'"source":{"topic":' + topic + b',"partition":%d,"offset":%%d},"lag":{"records":%d},"role":"%b",'
            b'"instance":' + told + b',"value":%%b}'
        )
        self._blanks: dict[int, tuple[Standing, bytes]] = {}
        kept_s = round(state.query.stale_after.total_seconds())
        self._kept = f"max-age={kept_s}" if kept_s else "no-cache"

    def body(self, key: str, entry: Entry, standing: Standing, now: int, value: bytes | None = None) -> bytes:
        """The answer's JSON, whose value is the record's own text, or this in place of it."""
        return filled(self.blank(entry.partition, standing), key, entry, now, value)

    def blank(self, partition: int, standing: Standing) -> bytes:
        """An answer's JSON of a key in the partition, to be `filled`. Kept until the standing changes."""
        kept = self._blanks.get(partition)
        if kept is None or kept[0] != standing:
            kept = standing, self._body % (partition, standing.lag, ROLES[standing.role])
            self._blanks[partition] = kept
        return kept[1]

    def headers(self, tag: str, role: str, lag: str) -> Headers:
        """What is said with each answer, also where there is no body."""
        return (
            ("ETag", f'"{tag}"'),
            ("Cache-Control", self._kept),
            ("Stateloop-Role", role),
            ("Stateloop-Lag", lag),
            ("Stateloop-Instance", self._instance),
            *SECURITY,
        )

    def found(
        self, key: str, found: FoundEntry, standing: Standing, now: int, value: bytes | None = None
    ) -> HttpResponse:
        """An answer as a whole."""
        headers = self.headers(found.entry.tag, standing.role.value, str(standing.lag))
        if found.unchanged:
            return HttpResponse(304, headers, b"")
        body = self.body(key, found.entry, standing, now, value)
        return HttpResponse(200, (("Content-Type", JSON), *headers), body)

    def problem(self, key: str, problem: Problem, standing: Standing) -> HttpResponse:
        """A problem, which tells too who has it."""
        return problem_response(self.about(key, problem, standing))

    def about(self, key: str, problem: Problem, standing: Standing) -> Problem:
        """The problem with the key, and how this instance stands to it."""
        facts = {"state": self.state.name, "key": key, **problem.facts}
        stands = {"lag": {"records": standing.lag}, "role": standing.role, "instance": self._instance}
        return problem._replace(facts=facts | stands)


def filled(blank: bytes, key: str, entry: Entry, now: int, value: bytes | None = None) -> bytes:
    """The answer's JSON about the entry, whose value is the record's own text, or this in place of it."""
    life, epoch, version, event_time, _, offset, whole = entry
    return blank % (
        orjson.dumps(key),
        epoch,
        version,
        b'"%b"' % written(life) if life else b"null",
        written(event_time),
        now - event_time if now > event_time else 0,  # max() takes three times as long
        offset,
        whole if value is None else value,
    )


def written(milliseconds: int) -> bytes:
    """A time since 1970, as ISO 8601 in UTC."""
    seconds, rest = divmod(milliseconds, 1000)
    return _second(seconds) + REST[rest]


@lru_cache(SECONDS_KEPT)
def _second(seconds: int) -> bytes:
    """Times of events are near each other, and to write one anew costs as much as the rest of an answer."""
    return iso(seconds * 1000)[: -len(".000Z")].encode()
