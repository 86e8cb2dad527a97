"""Problems: the reasons why a request has no answer, as problem details (RFC 9457)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from services.query.errors import QueryServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT_TYPE = "application/problem+json"
NO_FACTS: Mapping[str, Any] = MappingProxyType({})
TITLES = {
    "bad_request": (400, "The request is not valid"),
    "no_token": (401, "A token is required"),
    "not_yours": (403, "The scope of the token does not include this"),
    "other_host": (403, "The service does not answer under this host name"),
    "unknown_path": (404, "The path does not exist"),
    "unknown_state": (404, "The state does not exist"),
    "unknown_application": (404, "The application does not exist"),
    "never_seen": (404, "The key was never seen"),
    "no_window": (404, "The key has no window at this time"),
    "version_not_kept": (404, "The version is not kept"),
    "read_only": (405, "States are read-only"),
    "expired": (410, "The key's window has expired"),
    "changed": (412, "The row has another version"),
    "too_large": (413, "The request is too large"),
    "elsewhere": (421, "Another instance owns this key"),
    "too_many": (429, "Too many requests"),
    "misplaced": (500, "Keys of this state are in the wrong partitions"),
    "failed": (500, "The service failed to answer"),
    "behind": (503, "This version or event has not arrived yet"),
    "catching_up": (503, "The key's partition is catching up"),
    "not_written": (503, "The brokers have not stored the row"),
    "too_slow": (503, "The client reads changes too slowly"),
    "unreachable": (503, "No instance that owns this key is reachable"),
}
"""Status and title of each type of problem."""
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
