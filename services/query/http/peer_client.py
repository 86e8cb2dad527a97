"""Asks other instances what this one cannot answer: one hop, over connections that are kept."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from services.query.dependencies import HOP
from services.query.http.responses import HttpResponse
from services.query.lookup.problem import RETRY_AFTER_S, Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import SecretStr

    from services.query.cluster.routing import Member
    from services.query.dependencies import ForwardedRequest

log = logging.getLogger(__name__)

ANSWER_S = 1.0
"""How long one instance may take, beside the time that the question wants it to wait."""
CONNECT_S = 0.5
CONNECTIONS = 100
"""To each instance."""
OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
NOT_AN_ANSWER = {HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.UNAUTHORIZED}


class HttpPeerClient:
    """Implements Proxy. `token` is what instances show each other: the client's own is not handed on."""

    def __init__(self, token: SecretStr | None, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._always = {HOP: "1"}
        if token is not None:
            self._always["Authorization"] = f"Bearer {token.get_secret_value()}"

    async def __aenter__(self) -> Self:
        self._session = ClientSession(
            connector=TCPConnector(limit_per_host=CONNECTIONS, limit=0),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept-Encoding"),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ask(self, members: Sequence[Member], question: ForwardedRequest) -> HttpResponse:
        """The answer of the first of these that gives one. Raises ProblemError (503).

        Who is not there or says 421 gives none; who is catching up has the last word only when nobody else answers.
        """
        waiting: HttpResponse | None = None
        for member in members:
            reply = await self._asked(member, question)
            if reply is not None and reply.status != HTTPStatus.SERVICE_UNAVAILABLE:
                return reply
            waiting = waiting or reply
        if waiting is not None:
            return waiting
        asked = ", ".join(member.instance for member in members) or "nobody"
        raise ProblemError(Problem("unreachable", f"No answer from {asked}", retry_after=RETRY_AFTER_S))

    async def _asked(self, member: Member, question: ForwardedRequest) -> HttpResponse | None:
        url = URL(member.url + question.target, encoded=True)
        timeout = ClientTimeout(total=self._answer_s + _patience(url), sock_connect=CONNECT_S)
        headers = dict(question.headers) | self._always
        try:
            async with self._session.request(
                question.method,
                url,
                headers=headers,
                data=question.body or None,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                if response.status == HTTPStatus.UNAUTHORIZED:
                    log.warning("an instance refuses this one: give both the same STATELOOP_PEER_TOKEN")
                if response.status in NOT_AN_ANSWER:
                    return None
                kept = tuple((n, v) for n, v in response.headers.items() if n.lower() not in OF_THE_CONNECTION)
                return HttpResponse(response.status, kept, await response.read())
        except (ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            facts = {"instance": member.instance, "detail": f"{type(error).__name__}: {error}"}
            log.warning("an instance did not answer", extra={"facts": facts})
            return None


def _patience(url: URL) -> float:
    """How long the question wants the answer to be waited for, in seconds."""
    try:
        return max(0.0, float(url.query.get("wait", "0")))
    except ValueError:
        return 0.0
