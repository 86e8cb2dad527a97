"""Problems: the reasons why a request has no answer, as problem details (RFC 9457)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from contracts.api.problems import TITLES
from services.query.errors import QueryServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT_TYPE = "application/problem+json"
NO_FACTS: Mapping[str, Any] = MappingProxyType({})
RETRY_AFTER_S = 1
"""Retry-After of problems that pass on their own."""


class Problem(NamedTuple):
    """Why a request has no answer. `kind` is a key of TITLES, `facts` are further members, `retry_after` is seconds."""

    kind: str
    detail: str
    facts: Mapping[str, Any] = NO_FACTS
    retry_after: int | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return TITLES[self.kind][0]

    def members(self) -> dict[str, Any]:
        """The members of the JSON object."""
        status, title = TITLES[self.kind]
        return {"type": self.kind, "title": title, "status": status, "detail": self.detail, **self.facts}


class ProblemError(QueryServiceError):
    """A request is answered with a problem, and with these headers."""

    def __init__(self, problem: Problem, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers
