"""Forwards requests about keys that another instance owns, by one hop."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from yarl import URL

from services.query.http.peer_client import PASSING_HEADER, ForwardedRequest
from services.query.http.responses import uncached_response
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError
from services.query.lookup.state_reader import ANSWERING_ROLES

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence
    from typing import Any

    from services.query.cluster import Member
    from services.query.dependencies import Dependencies
    from services.query.http.peer_client import PeerClient
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import ReadResult, StateReader

Outcome = TypeVar("Outcome")
FORWARDED_HEADERS = ("If-None-Match",)
"""Headers of the client that are forwarded. Not the token: the instance that the client reached checks it."""
LOOK_S = 1.0
"""The interval in which a waiting request looks whether its partition has moved."""
SEPARATOR = b"\x1e"
"""Between the texts of a response to another instance. No JSON text contains this byte, so none must be parsed."""
SEQUENCE = "application/json-seq"


class PartitionMovedError(ProblemError):
    """The partition moved to another instance while its former owner waited."""

    def __init__(self) -> None:
        super().__init__(Problem("unreachable", "The partition moved", retry_after=RETRY_AFTER_S))


class Forwarder:
    """Forwards requests, unless the cluster has one instance or the request was forwarded already: these get 421."""

    def __init__(self, dependencies: Dependencies, peers: PeerClient | None) -> None:
        self._routing = dependencies.routing
        self._peers = peers

    def can_forward(self, request: HttpRequest) -> bool:
        """Whether the request may be forwarded."""
        return self._peers is not None and not request.is_forwarded

    def owners(self, state: str, partition: int) -> Sequence[Member]:
        """The instances that may answer for the partition. Raises ProblemError (503) while they are unknown."""
        if not (found := self._routing.owners(state, partition)):
            raise ProblemError(Problem("unreachable", "The owner is not known yet", retry_after=RETRY_AFTER_S))
        return found

    async def outcome(
        self, request: HttpRequest, reader: StateReader, found: ReadResult[Outcome]
    ) -> Outcome | HttpResponse:
        """What was read of the request's key, or the response of its owner. Raises ProblemError."""
        if found.belongs_to_peer and self.can_forward(request):
            return await self.forward_read(request, found.partition)
        return reader.outcome(request.key, found)

    async def forward_read(self, request: HttpRequest, partition: int, wait_s: float = 0) -> HttpResponse:
        """The owner's response to a request about a key, which may wait so long.

        Raises ProblemError (503), also when the partition moves while the owner waits: a frozen one would not respond.
        """
        headers = tuple((name, request.headers[name]) for name in FORWARDED_HEADERS if name in request.headers)
        url = URL(request.target, encoded=True)
        if "wait" in url.query:
            url = url.update_query(wait=f"{wait_s:.3f}")
        owners = self.owners(request.name, partition)
        response = self._forward(owners, ForwardedRequest(url.raw_path_qs, headers=headers))
        return await (self._until_moved(response, request.name, partition, owners[0]) if wait_s else response)

    async def forward_sequence(
        self, members: Sequence[Member], request: ForwardedRequest, number: int | None = None
    ) -> tuple[list[bytes], tuple[int, ...]]:
        """The texts of a `sequence_response`, and the indices of those that may be different a moment later.

        Raises ProblemError (503), also if there are not `number` texts.
        """
        response = await self._forward(members, request)
        texts = response.body.split(SEPARATOR)
        if response.status != HTTPStatus.OK or number not in {None, len(texts)}:
            detail = f"{members[0].instance} did not answer for its keys"
            raise ProblemError(Problem("unreachable", detail, retry_after=RETRY_AFTER_S))
        return texts, response.passing

    async def _until_moved(
        self, forwarding: Coroutine[Any, Any, HttpResponse], state: str, partition: int, owner: Member
    ) -> HttpResponse:
        """The response of the owner. Raises PartitionMovedError if the partition moves first."""
        response = asyncio.ensure_future(forwarding)
        try:
            while not (await asyncio.wait([response], timeout=LOOK_S))[0]:
                if self._has_moved(state, partition, owner):
                    raise PartitionMovedError
            return response.result()
        finally:
            response.cancel()

    def _has_moved(self, state: str, partition: int, owner: Member) -> bool:
        """Whether this instance answers for the partition now, or another one than the former owner."""
        if self._routing.partition_status(state, partition).role in ANSWERING_ROLES:
            return True
        owners = self._routing.owners(state, partition)
        return bool(owners) and owners[0].instance != owner.instance

    async def _forward(self, members: Sequence[Member], request: ForwardedRequest) -> HttpResponse:
        assert self._peers is not None  # noqa: S101  # see `can_forward`
        return await self._peers.forward(members, request)


def sequence_response(texts: Iterable[bytes], passing: Iterable[int] = ()) -> HttpResponse:
    """Texts for another instance, and the indices of those that may be different a moment later."""
    indices = ",".join(map(str, passing))
    headers = ((PASSING_HEADER, indices),) if indices else ()
    return uncached_response(SEPARATOR.join(texts), SEQUENCE, headers)
