"""The errors of the client. "Never seen" and "expired" are results, not errors."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from contracts.errors import PermanentError, RetryableError, StateloopError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.client.paths import UnknownPath

CLOSE = 0.75
"""The similarity of two paths, from 0 to 1, above which one is suggested for the other."""


class ClientError(StateloopError):
    """The base of the client's errors. Each is also a RetryableError or a PermanentError of `stateloop`."""


class NoAnswerError(ClientError, RetryableError):
    """No instance returned a result within the deadline. `last` describes the last attempt."""

    advice = "check that the query service runs, and that its address is right"

    def __init__(self, what: str, deadline_s: float, tries: int, last: str) -> None:
        tried = "1 try" if tries == 1 else f"{tries} tries"
        super().__init__(f"{what}: no answer within {deadline_s:g} s and {tried}; the last one: {last}. {self.advice}")
        self.deadline_s = deadline_s
        self.tries = tries
        self.last = last


class CatchingUpError(NoAnswerError):
    """The instances of the key are up, and have not yet caught up with its topic."""

    advice = "Ask again in a while, or allow more time with deadline="


class AttemptFailedError(Exception):
    """One attempt failed; another one may succeed elsewhere, or later. Users do not see it.

    `kind` is the error that is raised when no time is left for another attempt, `after_s` the seconds of Retry-After.
    """

    def __init__(self, reason: str, *, after_s: float | None = None, kind: type[NoAnswerError] = NoAnswerError) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after_s = after_s
        self.kind = kind


class UnreachableError(AttemptFailedError):
    """The instance did not answer."""


class NotArrivedError(ClientError, RetryableError):
    """The requested version or event has not arrived. `latest` is the tag of the latest version, if there is one.

    `latest_offset` is the offset of the latest event, where one was requested.
    """

    def __init__(self, what: str, facts: Mapping[str, Any]) -> None:
        super().__init__(
            f"{what}: {facts.get('detail') or 'this version has not arrived'} (allow more time with wait=)"
        )
        self.latest = facts.get("latest")
        self.latest_offset = facts.get("latest_offset")


class StaleReadError(NoAnswerError):
    """All responses were older than what this client has returned for the key before."""

    advice = "An instance is behind, or the topic was created again: then open a new Client"


class RejectedError(ClientError, PermanentError):
    """The service rejected the request. `facts` are the members of its problem (RFC 9457)."""

    def __init__(self, what: str, status: int, facts: Mapping[str, Any]) -> None:
        detail = facts.get("detail") or facts.get("title") or "no reason given"
        super().__init__(f"{what} was refused ({status}): {detail}")
        self.status = status
        self.kind = str(facts.get("type", ""))
        self.facts = facts


class AccessDeniedError(RejectedError):
    """The token is missing, unknown, or does not cover this state and key."""


class InvalidAddressError(ClientError, PermanentError):
    """An address is not a valid URL of a query service."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url!r} is no address of a query service: write one such as http://127.0.0.1:8090")
        self.url = url


class UnknownFieldError(ClientError, PermanentError):
    """No record of the state has this field. `names` are the fields at its place."""

    def __init__(self, state: str, unknown: UnknownPath) -> None:
        above = f"{unknown.parent}." if unknown.parent else ""
        known = [f"{above}{name}" for name in unknown.names]
        near = get_close_matches(unknown.path, known, 1, CLOSE)
        advice = f"write {near[0]}" if near else "write one of the known fields"
        fields = ", ".join(known) or f"none, for {unknown.parent!r} is a single value"
        super().__init__(f"the state {state!r} has no field {unknown.path!r}: {advice} (known: {fields})")
        self.state = state
        self.path = unknown.path
        self.names = tuple(known)


class InvalidResponseError(ClientError, PermanentError):
    """A response is not one of the query service."""

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"{url} answered what no query service answers ({problem}): check the address")
        self.url = url
        self.problem = problem


class ModelMismatchError(ClientError, PermanentError):
    """A value does not match the requested model."""

    def __init__(self, state: str, key: str, model: str, problem: str) -> None:
        super().__init__(f"the value of {state}/{key} is no {model} ({problem}): correct the model, or leave it out")
        self.state = state
        self.key = key
        self.model = model


class TokenFileError(ClientError, PermanentError):
    """The token file cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"the token cannot be read from {path} ({problem}): write one line of text there")
        self.path = path
