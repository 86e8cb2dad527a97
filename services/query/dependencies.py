"""What the pieces of the service share, and what a piece with routes of its own is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from aiohttp import web

    from contracts.metrics.counts import Counts
    from contracts.model.named_state import NamedState
    from services.query.cluster.routing import Member, Roles
    from services.query.http.responses import Headers, HttpResponse
    from services.query.settings import QuerySettings
    from services.query.store.store import Store


HOP = "Stateloop-Hop"
"""The header of a question that another instance hands on: it is not handed on again."""


class ForwardedRequest(NamedTuple):
    """A request that is handed on. `target` is the path with its query, as it was sent."""

    target: str
    method: str = "GET"
    headers: Headers = ()
    body: bytes = b""


@dataclass(frozen=True)
class Parts:
    """The states that can be asked with their stores, by name, and what answers about them need."""

    settings: QuerySettings
    states: Mapping[str, NamedState]
    stores: Mapping[str, Store]
    roles: Roles
    counts: Counts
    now: Callable[[], int]
    """The time, in milliseconds since 1970."""
    clock: Callable[[], float]
    """A monotonic clock, in seconds."""
    misplaced: Mapping[str, int] = field(default_factory=dict)
    """How many keys, of some that were looked at, are not where a key is looked for, by state."""


class PeerClient(Protocol):
    """Asks other instances, one hop away: they answer for what they hold themselves, or say 421."""

    async def ask(self, members: Sequence[Member], question: ForwardedRequest) -> HttpResponse:
        """The answer of the first of these that gives one, whatever it is but a 421. Raises ProblemError (503)."""
        ...


class Routes(Protocol):
    """A piece of the service that answers requests; service.py has the list of them."""

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """What it answers. A path below /v1/ wants a token, and its handler looks at the scope: `holder(request)`."""
        ...
