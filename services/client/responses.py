"""Interprets responses: a result, a reason to retry, or an error. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from services.client.answers import Expired, NeverSeen, NoWindow, first_error, found
from services.client.errors import (
    AccessDeniedError,
    AttemptFailedError,
    CatchingUpError,
    InvalidResponseError,
    NoAnswerError,
    NotArrivedError,
    RejectedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.client.answers import Answer, T
    from services.client.transport import InstanceResponse

LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.MISDIRECTED_REQUEST)
NEVER_SEEN = "never_seen"
NO_WINDOW = "no_window"
BEHIND = "behind"
M = TypeVar("M", bound=BaseModel)


def answer(reply: InstanceResponse, state: str, key: str, read: Callable[[Any], T]) -> Answer[T]:
    """Return the result for a key. Raises AttemptFailedError and ClientError."""
    facts = reply.body if isinstance(reply.body, Mapping) else {}
    if reply.status == HTTPStatus.GONE:
        return Expired(state, key, facts)
    if missing := never_seen(reply, state, key):
        return missing
    if reply.status == HTTPStatus.NOT_FOUND and kind(facts) == NO_WINDOW:
        return NoWindow(state, key, facts)
    body = content(reply, f"{state}/{key}")
    try:
        answered = found(body, read)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidResponseError(reply.url, f"of an answer's fields, {error}") from error
    if (answered.state, answered.key) != (state, key):
        raise InvalidResponseError(reply.url, f"{answered.state}/{answered.key}, asked for {state}/{key}")
    return answered


def never_seen(reply: InstanceResponse, state: str, key: str) -> NeverSeen | None:
    """Return the result for a key that was never seen; None for any other response."""
    is_missing = isinstance(reply.body, Mapping) and reply.status == HTTPStatus.NOT_FOUND
    return NeverSeen(state, key, reply.body) if is_missing and kind(reply.body) == NEVER_SEEN else None


def content(reply: InstanceResponse, what: str) -> Mapping[str, Any]:
    """Return the JSON object of a response. Raises AttemptFailedError, RejectedError or InvalidResponseError."""
    if reply.status != HTTPStatus.OK:
        raise failure(reply, what)
    if not isinstance(reply.body, Mapping):
        raise InvalidResponseError(reply.url, "its JSON is no object")
    return reply.body


def parsed(reply: InstanceResponse, what: str, model: type[M]) -> M:
    """Return the model of a response, whose unknown members are those of a later release. Raises as `content`."""
    body = content(reply, what)
    try:
        return model.model_validate(body, extra="ignore")
    except ValidationError as error:
        raise InvalidResponseError(reply.url, first_error(error)) from error


def failure(reply: InstanceResponse, what: str) -> Exception:
    """Return the error for a status."""
    facts = reply.body if isinstance(reply.body, Mapping) else {}
    message = f"{reply.url} answered {reply.status} {facts.get('detail') or kind(facts)}".rstrip()
    if kind(facts) == BEHIND:
        return NotArrivedError(what, facts)
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status in LATER:
        busy = reply.status == HTTPStatus.SERVICE_UNAVAILABLE and kind(facts) != ""
        return AttemptFailedError(message, after_s=reply.after_s, kind=CatchingUpError if busy else NoAnswerError)
    if reply.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return AccessDeniedError(what, reply.status, facts)
    return RejectedError(what, reply.status, facts)


def kind(facts: Mapping[str, Any]) -> str:
    """The type of a problem, without the address that it may have before it."""
    return str(facts.get("type", "")).rpartition("/")[2]
