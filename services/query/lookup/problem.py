"""What a client is told when it does not get what it asked for: application/problem+json (RFC 9457)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT_TYPE = "application/problem+json"
NO_FACTS: Mapping[str, Any] = MappingProxyType({})
TITLES = {
    "bad_request": (400, "The request cannot be understood"),
    "no_token": (401, "A token is needed"),
    "not_yours": (403, "The token does not reach so far"),
    "other_host": (403, "The service is not asked under this name"),
    "unknown_path": (404, "There is no such path"),
    "unknown_state": (404, "There is no state of this name"),
    "never_seen": (404, "The key was never seen"),
    "version_not_kept": (404, "The version is not kept"),
    "read_only": (405, "States can only be read"),
    "expired": (410, "The key's window has expired"),
    "too_large": (413, "The request is too large"),
    "elsewhere": (421, "Another instance answers for this key"),
    "too_many": (429, "Too many requests"),
    "misplaced": (500, "Keys of this state are not where they are looked for"),
    "failed": (500, "The service failed to answer"),
    "behind": (503, "This version or event has not arrived yet"),
    "catching_up": (503, "The key's partition is still catching up"),
    "too_slow": (503, "The client takes changes too slowly"),
    "unreachable": (503, "Nobody who could answer can be reached"),
}
"""The kinds of problems, with status and title."""
RETRY_AFTER_S = 1
"""How long a client is asked to wait before it tries again, where that will do."""


class Problem(NamedTuple):
    """Why there is no answer. `kind` is one of TITLES; `facts` are told beside it; `retry_after` is in seconds."""

    kind: str
    detail: str
    facts: Mapping[str, Any] = NO_FACTS
    retry_after: int | None = None

    @property
    def status(self) -> int:
        """The status of the response."""
        return TITLES[self.kind][0]

    def members(self) -> dict[str, Any]:
        """What the body says."""
        status, title = TITLES[self.kind]
        return {"type": self.kind, "title": title, "status": status, "detail": self.detail, **self.facts}


class ProblemError(Exception):
    """Raised by a handler; the client gets the problem, with these headers too."""

    def __init__(self, problem: Problem, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers
