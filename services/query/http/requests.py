"""Requests as handlers read them, whether aiohttp has parsed them or the fast path."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from contracts.api.reads import PageParameters
from contracts.api.windows import CoverageParameters, WindowPageParameters, WindowsParameters
from services.query.http.peer_client import FORWARDED, PASSING_HEADER
from services.query.http.responses import problem_response
from services.query.http.retry import is_passing
from services.query.http.validation import validate
from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from services.query.http.responses import HttpResponse
    from services.query.http.retry import RetryBudget
    from services.query.http.validation import Model
    from services.query.lookup.authentication import Principal
    from services.query.lookup.rate_limit import RateMeter

    Handler = Callable[["HttpRequest"], Awaitable[HttpResponse]]

Page = TypeVar("Page", PageParameters, WindowPageParameters, WindowsParameters, CoverageParameters)


class HttpRequest:
    """An admitted request. `name`, `key` and `time` are the decoded segments of its path, if it has them."""

    time = ""
    target = ""
    """The path with the query, as the client sent it."""
    query: Sequence[tuple[str, str]] = ()
    body = b""
    retries: RetryBudget
    """Set before a handler waits: the fast path makes one only then."""
    charged = 1
    """For how many keys it was charged. Admission charges one."""
    wait_until: float | None = None
    """Until when it may wait, by the instance's clock. A retry gets no more time."""

    def __init__(self, sender: Principal, meter: RateMeter, headers: Mapping[str, str], name: str, key: str) -> None:
        self.sender = sender
        self.meter = meter
        self.headers = headers
        self.name = name
        self.key = key

    @property
    def is_forwarded(self) -> bool:
        """Whether another instance sent it."""
        return FORWARDED in self.headers

    def parse(self, model: type[Model]) -> Model:
        """The query. Raises ProblemError (400) that names the wrong parameters."""
        members: dict[str, Any] = {}
        for name, value in self.query:
            if name == "where":
                members.setdefault("where", []).append(value)
            elif name in members:
                raise ProblemError(Problem("bad_request", f"{name} appears twice"))
            else:
                members[name] = value
        return validate(model, members)

    def charge(self, keys: int) -> None:
        """Charge the sender for this many keys in all: once, however often the request is retried."""
        if keys > self.charged:
            self.meter.charge(keys - self.charged)
            self.charged = keys

    def charge_page(self, query: Page, most: int, unit: str) -> Page:
        """Charge the sender for a page, and return its query: without a limit of the sender, with at most `most`.

        Raises ProblemError (400) for a larger limit.
        """
        if "limit" not in query.model_fields_set:
            query = query.model_copy(update={"limit": min(query.limit, most)})
        if query.limit > most:
            raise ProblemError(Problem("bad_request", f"limit: at most {most} {unit}"))
        self.charge(query.limit)
        return query


async def respond(handler: Handler, request: HttpRequest) -> HttpResponse:
    """The handler's response, also to a problem. It is retried while a problem may pass, and the budget lasts."""
    while True:
        try:
            response = await handler(request)
        except ProblemError as error:
            passes = is_passing(error.problem)
            if passes and await request.retries.pause():
                continue
            marks = ((PASSING_HEADER, "0"),) if passes and request.is_forwarded else ()  # that instance may retry it
            return problem_response(error.problem, (*error.headers, *marks))
        if not (response.passing and await request.retries.pause()):
            return response
