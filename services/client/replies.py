"""What a reply means: an answer, a reason to try again, or an error. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from services.client.answers import Expired, NeverSeen, found
from services.client.errors import AccessDenied, CatchingUp, NoAnswer, NotYet, Refused, Unreadable
from services.client.tries import TryAgain

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.client.answers import Answer, T
    from services.client.transport import Reply

LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
NEVER_SEEN = "never_seen"
BEHIND = "behind"


class Elsewhere(TryAgain):
    """The instance has not this key: another has become its owner."""


def answer(reply: Reply, state: str, key: str, read: Callable[[Any], T]) -> Answer[T]:
    """What a reply says of a key. Raises TryAgain, NotYet, Refused or Unreadable."""
    facts = reply.body if isinstance(reply.body, Mapping) else {}
    if reply.status == HTTPStatus.GONE:
        return Expired(state, key, facts)
    if reply.status == HTTPStatus.NOT_FOUND and kind(facts) == NEVER_SEEN:
        return NeverSeen(state, key, facts)
    told = content(reply, f"{state}/{key}")
    try:
        answered = found(told, read)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(reply.url, f"of an answer's fields, {error}") from error
    if (answered.state, answered.key) != (state, key):
        raise Unreadable(reply.url, f"{answered.state}/{answered.key}, asked for {state}/{key}")
    return answered


def content(reply: Reply, what: str) -> Mapping[str, Any]:
    """The JSON of a reply that is one. Raises TryAgain, Refused or Unreadable."""
    if reply.status != HTTPStatus.OK:
        raise failure(reply, what)
    if not isinstance(reply.body, Mapping):
        raise Unreadable(reply.url, "its JSON is no object")
    return reply.body


def failure(reply: Reply, what: str) -> Exception:
    """The error that a status stands for."""
    facts = reply.body if isinstance(reply.body, Mapping) else {}
    told = f"{reply.url} answered {reply.status} {facts.get('detail') or kind(facts)}".rstrip()
    if kind(facts) == BEHIND:
        return NotYet(what, facts)
    if reply.status == HTTPStatus.MISDIRECTED_REQUEST:
        return Elsewhere(told)
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status in LATER:
        busy = reply.status == HTTPStatus.SERVICE_UNAVAILABLE and kind(facts) != ""
        return TryAgain(told, after_s=reply.after_s, kind=CatchingUp if busy else NoAnswer)
    if reply.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return AccessDenied(what, reply.status, facts)
    return Refused(what, reply.status, facts)


def kind(facts: Mapping[str, Any]) -> str:
    """The type of a problem, without the address that it may have before it."""
    return str(facts.get("type", "")).rpartition("/")[2]
