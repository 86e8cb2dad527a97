"""What can go wrong between a caller and the query service. "Never seen" and "expired" are answers, not errors."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from contracts.errors import StateloopError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.client.paths import UnknownPath

CLOSE = 0.75
"""How alike two paths are, from 0 to 1, of which one is taken for the other misspelt."""


class QueryError(StateloopError):
    """The base of the client's errors."""


class RetryableError(QueryError):
    """A later call may succeed."""


class PermanentError(QueryError):
    """Nothing changes until somebody does what the message says."""


class NoAnswer(RetryableError):
    """No instance gave an answer within the deadline. `last` is what the last try met, and who was tried."""

    advice = "check that the query service runs, and that its address is right"

    def __init__(self, what: str, deadline_s: float, tries: int, last: str) -> None:
        tried = "1 try" if tries == 1 else f"{tries} tries"
        super().__init__(f"{what}: no answer within {deadline_s:g} s and {tried}; the last one: {last}. {self.advice}")
        self.deadline_s = deadline_s
        self.tries = tries
        self.last = last


class CatchingUp(NoAnswer):
    """The instances that have the key are there, and do not yet hold all that was shown before."""

    advice = "Ask again in a while, or allow more time with deadline="


class NotYet(RetryableError):
    """The version or the event that was asked for has not arrived. `latest` is the tag of what has, if something has.

    `latest_offset` is the offset of the latest event that has, where one was asked for.
    """

    def __init__(self, what: str, facts: Mapping[str, Any]) -> None:
        super().__init__(
            f"{what}: {facts.get('detail') or 'this version has not arrived'} (allow more time with wait=)"
        )
        self.latest = facts.get("latest")
        self.latest_offset = facts.get("latest_offset")


class SteppedBack(NoAnswer):
    """All that came was older than what this client has shown of the key."""

    advice = "An instance is behind, or the topic was made anew: then open a new Client"


class Refused(PermanentError):
    """The service does not answer such a query. `facts` is what it said, as in RFC 9457."""

    def __init__(self, what: str, status: int, facts: Mapping[str, Any]) -> None:
        told = facts.get("detail") or facts.get("title") or "it does not say why"
        super().__init__(f"{what} was refused ({status}): {told}")
        self.status = status
        self.kind = str(facts.get("type", ""))
        self.facts = facts


class AccessDenied(Refused):
    """The token is missing, unknown, or not good for this state and key."""


class AddressWrong(PermanentError):
    """An address cannot be that of a query service."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url!r} is no address of a query service: write one such as http://127.0.0.1:8090")
        self.url = url


class UnknownField(PermanentError):
    """No record of the state has this field. `names` are the fields that there are in its place."""

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


class Unreadable(PermanentError):
    """What answered does not speak as the query service does."""

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"{url} answered what no query service answers ({problem}): check the address")
        self.url = url
        self.problem = problem


class ModelRefused(PermanentError):
    """A value is not of the model that it was to be read as."""

    def __init__(self, state: str, key: str, model: str, problem: str) -> None:
        super().__init__(f"the value of {state}/{key} is no {model} ({problem}): correct the model, or leave it out")
        self.state = state
        self.key = key
        self.model = model


class NoToken(PermanentError):
    """The file of the token cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"the token cannot be read from {path} ({problem}): write one line of text there")
        self.path = path
