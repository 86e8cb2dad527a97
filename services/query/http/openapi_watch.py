"""The routes that watch, as the OpenAPI document has them: it knows requests and answers, and these go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from services.query.http.watch_commands import Subscribe, Unsubscribe
from services.query.http.watch_models import MESSAGES
from services.query.lookup.version_reference import TAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

ASKED = (Subscribe, Unsubscribe)
MODELS: tuple[type[BaseModel], ...] = (*ASKED, *MESSAGES)
PROBLEMS = ("bad_request", "no_token", "not_yours", "too_many", "failed")
KEYED = (*PROBLEMS, "unknown_state")
EVENTS = (
    "Server-sent events. `state`: the answer as a read of the key gives it, its id the version's tag. `never_seen`, "
    "`removed`, `expired`: the key has no value. `mark`: how far the client and the topic's reading are. `reset`: "
    "changes are lost to the client. `problem`: the last event, when the token does not reach the key any more."
)
CURRENT = {
    "name": "current",
    "in": "query",
    "description": "Whether the value that is there now is told first",
    "schema": {"type": "string", "enum": ["true", "false"], "default": "true"},
}
LAST = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that the client has: it is told what came after it",
    "schema": {"type": "string", "pattern": TAG},
}
PROTOCOL = {
    "name": "Sec-WebSocket-Protocol",
    "in": "header",
    "description": "stateloop.v1; a page adds its token, as stateloop.bearer.<base64url>",
    "schema": {"type": "string"},
}


def event_stream(at: Sequence[dict[str, Any]], problems: dict[str, Any]) -> dict[str, Any]:
    """One key as server-sent events. `at` are the parameters of the path, `problems` the responses of KEYED."""
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "operationId": "watchKey",
        "summary": "What a key is now, and what becomes of it",
        "parameters": [*at, CURRENT, LAST],
        "responses": {"200": {"description": EVENTS, "content": content}, **problems},
        "security": [{}, {"token": []}],
    }


def web_socket(problems: dict[str, Any], ref: str) -> dict[str, Any]:
    """Many subscriptions on a WebSocket; its messages, which OpenAPI has no word for, are in `x-messages`."""
    switched = "A WebSocket. What the client says and is told, as JSON in texts, is in x-messages"
    return {
        "operationId": "watchMany",
        "summary": "Keys, prefixes and filters, told as they change",
        "parameters": [PROTOCOL],
        "responses": {"101": {"description": switched}, **problems},
        "security": [{}, {"token": []}],
        "x-messages": {"asked": _one_of(ASKED, ref), "told": _one_of(MESSAGES, ref)},
    }


def _one_of(models: Sequence[type[BaseModel]], ref: str) -> dict[str, Any]:
    return {"oneOf": [{"$ref": ref.format(model=model.__name__)} for model in models]}
