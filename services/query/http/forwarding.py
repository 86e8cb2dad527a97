"""Questions whose key another instance answers for: handed on, by one hop."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from services.query.dependencies import HOP, ForwardedRequest
from services.query.http.responses import uncached_response
from services.query.lookup.problem import RETRY_AFTER_S, Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aiohttp import web

    from services.query.cluster.routing import Member
    from services.query.dependencies import Parts, PeerClient
    from services.query.http.responses import HttpResponse

PASSED = ("If-None-Match",)
"""What is handed on of a request's headers. Not the token: who was asked first has decided on it."""
BETWEEN = b"\x1e"
"""Between the texts of an answer to another instance: no JSON text has this byte in it, so none need be read."""
SEQUENCE = "application/json-seq"


class Forwarder:
    """Hands questions on; not in a cluster of one, nor what was handed on already: then the client gets 421."""

    def __init__(self, parts: Parts, proxy: PeerClient | None) -> None:
        self._roles = parts.roles
        self._proxy = proxy

    def may_ask(self, request: web.Request) -> bool:
        """Whether the request may be handed on."""
        return self._proxy is not None and HOP not in request.headers

    def owners(self, state: str, partition: int) -> Sequence[Member]:
        """Who answers for the partition. Raises ProblemError (503) while that is not known."""
        if not (found := self._roles.owners(state, partition)):
            raise ProblemError(Problem("unreachable", "It is not known yet who answers", retry_after=RETRY_AFTER_S))
        return found

    async def read(self, request: web.Request, state: str, partition: int, left_s: float = 0) -> HttpResponse:
        """The owner's answer to a request about a key, which may wait so long. Raises ProblemError (503)."""
        headers = tuple((name, request.headers[name]) for name in PASSED if name in request.headers)
        url = request.rel_url.update_query(wait=f"{left_s:.3f}") if "wait" in request.rel_url.query else request.rel_url
        return await self.ask(self.owners(state, partition), ForwardedRequest(url.raw_path_qs, headers=headers))

    async def ask(self, members: Sequence[Member], question: ForwardedRequest) -> HttpResponse:
        """What the first of them says that is there. Raises ProblemError (503)."""
        assert self._proxy is not None  # noqa: S101  # `may_ask` said so
        return await self._proxy.ask(members, question)

    async def several(
        self, members: Sequence[Member], question: ForwardedRequest, number: int | None = None
    ) -> list[bytes]:
        """The texts, so many of them, that another instance gives as a `sequence`. Raises ProblemError (503)."""
        reply = await self.ask(members, question)
        texts = reply.body.split(BETWEEN)
        if reply.status != HTTPStatus.OK or number not in {None, len(texts)}:
            detail = f"{members[0].instance} did not answer for its keys"
            raise ProblemError(Problem("unreachable", detail, retry_after=RETRY_AFTER_S))
        return texts


def sequence_response(texts: Iterable[bytes]) -> HttpResponse:
    """Texts for another instance, which puts its own among them."""
    return uncached_response(BETWEEN.join(texts), SEQUENCE)
