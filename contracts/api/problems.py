"""The problems of the API (RFC 9457): the status and title of each type, and the types that many endpoints share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

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
"""The status and title of each type of problem."""
REQUEST_PROBLEMS = ("no_token", "too_many", "failed")
"""The problems of every endpoint that needs a token."""
READ_PROBLEMS = ("bad_request", "not_yours", "unknown_state", "elsewhere", "unreachable", *REQUEST_PROBLEMS)


class ProblemAnswer(BaseModel):
    """Why there is no answer (RFC 9457), with further members by type."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str = Field(description="The type of problem, as never_seen, expired, catching_up")
    title: str
    status: int
    detail: str = Field(description="What to do")
