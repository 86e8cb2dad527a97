"""POST of many keys, from all instances that own some of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson

from contracts.api.reads import BATCH, BatchRequest
from services.query.http.forwarding import sequence_response
from services.query.http.peer_client import ForwardedRequest
from services.query.http.responses import JSON, HttpResponse, uncached_response
from services.query.http.routes import route
from services.query.http.validation import milliseconds_at, validate
from services.query.lookup.batch import Selection, Unanswered, encode_problem, read_batch
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

    from aiohttp import web

    from services.query.cluster import Member
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.lookup.authentication import Principal
    from services.query.lookup.state_reader import StateReader, StateReaders


class BatchRoutes:
    """Answers in the order of the keys, each as if it were requested alone."""

    def __init__(self, dependencies: Dependencies, readers: StateReaders, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._forwarder = forwarder

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(BATCH, self.post)]

    async def post(self, request: HttpRequest) -> HttpResponse:
        """An answer or a problem for each key. Raises ProblemError."""
        response = self.post_now(request)
        return response if isinstance(response, HttpResponse) else await response

    def post_now(self, request: HttpRequest) -> HttpResponse | Coroutine[Any, Any, HttpResponse]:
        """The same; a coroutine if some of the keys must be forwarded or retried. Raises ProblemError."""
        reader, batch = self._readers.get(request.name, request.sender), self._parse(request.body)
        request.charge(len(batch.keys))
        found = self._read(reader, request.sender, batch)
        if self._forwarder.can_forward(request) and any(isinstance(answer, Unanswered) for answer in found):
            return self._finish(request, reader, batch, found)
        return _respond(request, found)

    async def _finish(
        self, request: HttpRequest, reader: StateReader, batch: BatchRequest, found: list[bytes | Unanswered]
    ) -> HttpResponse:
        await self._complete(reader, batch, found)
        request.retries.begin()  # an instance that did not answer does not use it up
        await self._retry(request, reader, batch, found)
        return _respond(request, found)

    def _parse(self, body: bytes) -> BatchRequest:
        """The batch in the body. Raises ProblemError (400, 413)."""
        try:
            members = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ProblemError(Problem("bad_request", f"The body is not JSON: {error.msg}")) from None
        keys = members.get("keys") if isinstance(members, dict) else None
        limit = self._dependencies.settings.max_batch_keys
        if isinstance(keys, list) and len(keys) > limit:
            raise ProblemError(Problem("too_large", f"{len(keys)} keys, and a batch may have {limit}"))
        return validate(BatchRequest, members)

    def _read(self, reader: StateReader, sender: Principal, batch: BatchRequest) -> list[bytes | Unanswered]:
        """The answers of this instance."""
        return read_batch(
            reader, sender, batch.keys, Selection(batch.fields, milliseconds_at(batch.at)), self._dependencies
        )

    async def _retry(
        self, request: HttpRequest, reader: StateReader, batch: BatchRequest, found: list[bytes | Unanswered]
    ) -> None:
        """Read the keys of moving partitions again, while the budget lasts."""
        while moving := [at for at, one in enumerate(found) if isinstance(one, Unanswered)]:
            if not await request.retries.pause():
                return
            again = batch.model_copy(update={"keys": tuple(batch.keys[at] for at in moving)})
            some = self._read(reader, request.sender, again)
            await self._complete(reader, again, some)
            for at, one in zip(moving, some, strict=True):
                found[at] = one

    async def _complete(self, reader: StateReader, batch: BatchRequest, found: list[bytes | Unanswered]) -> None:
        """Forward the keys of other instances, to all of these at once."""
        by_owners: dict[Sequence[Member], list[int]] = {}
        for at, one in enumerate(found):
            if isinstance(one, Unanswered) and one.kind == "elsewhere":
                try:
                    owners = tuple(self._forwarder.owners(reader.state.name, one.partition))
                except ProblemError as error:
                    found[at] = _unanswered(batch.keys[at], error.problem)
                    continue
                by_owners.setdefault(owners, []).append(at)
        requests = [self._forward(owners, reader, batch, indices) for owners, indices in by_owners.items()]
        for answers in await asyncio.gather(*requests):
            for at, answer in answers.items():
                found[at] = answer

    async def _forward(
        self, owners: Sequence[Member], reader: StateReader, batch: BatchRequest, indices: Sequence[int]
    ) -> Mapping[int, bytes | Unanswered]:
        """The answers of other instances by index. If none is reachable, each key gets that problem."""
        members: dict[str, Any] = {"keys": [batch.keys[at] for at in indices], "fields": batch.fields}
        if batch.at is not None:  # an instance of an earlier release rejects a member that it does not know
            members["at"] = batch.at
        body = orjson.dumps(members)
        target = BATCH.target(name=reader.state.name)
        forwarded = ForwardedRequest(target, "POST", (("Content-Type", JSON),), body)
        try:
            texts, passing = await self._forwarder.forward_sequence(owners, forwarded, len(indices))
        except ProblemError as error:
            return {at: _unanswered(batch.keys[at], error.problem) for at in indices}
        found: dict[int, bytes | Unanswered] = dict(zip(indices, texts, strict=True))
        moving = [at for at in passing if at < len(texts)]
        return found | {indices[at]: _forwarded(batch.keys[indices[at]], texts[at]) for at in moving}


def _respond(request: HttpRequest, found: Sequence[bytes | Unanswered]) -> HttpResponse:
    """The answers and problems together; to another instance with the indices of the problems that may pass."""
    texts = [one if isinstance(one, bytes) else one.text for one in found]
    if request.is_forwarded:
        return sequence_response(texts, (at for at, one in enumerate(found) if isinstance(one, Unanswered)))
    return uncached_response(b'{"answers":[%b]}' % b",".join(texts))


def _forwarded(key: str, text: bytes) -> Unanswered:
    """Another instance's problem of a key. `elsewhere` is for instances: clients cannot go on after it."""
    if orjson.loads(text)["type"] == "elsewhere":
        return _unanswered(key, Problem("unreachable", "The owner is not known yet", retry_after=RETRY_AFTER_S))
    return Unanswered(-1, "forwarded", text)


def _unanswered(key: str, problem: Problem) -> Unanswered:
    return Unanswered(-1, problem.kind, encode_problem(key, problem))
