"""The watch routes in the OpenAPI document, which has no streams: their events and messages are described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contracts.api.reads import SPAN
from contracts.api.watch import MESSAGES, WATCH_KEY, WATCH_MANY
from services.query.http.watch_commands import Subscribe, Unsubscribe
from services.query.lookup.version_reference import TAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

COMMANDS = (Subscribe, Unsubscribe)
MODELS: tuple[type[BaseModel], ...] = (*COMMANDS, *MESSAGES)
EVENTS = (
    "Server-sent events. `state`: the answer that a GET of the key returns; its id is the tag of the version. "
    "`never_seen`, `removed`, `expired`, `left`: the key has no value, or is not silent. "
    "`mark`: how far the client and the instance are behind. "
    "`reset`: changes were lost. `problem`: the last event, when the token may not read the key any more."
)
CURRENT = {
    "name": "current",
    "in": "query",
    "description": "Whether the present value is sent first",
    "schema": {"type": "string", "enum": ["true", "false"], "default": "true"},
}
WINDOW = {
    "name": "window",
    "in": "query",
    "description": "Of a windowed state: the newest window of the key, all windows, or the one that contains this time",
    "schema": {
        "anyOf": [{"enum": ["newest", "all"]}, {"type": "string", "format": "date-time"}],
        "default": "newest",
    },
}
SILENT = {
    "name": "silent_for",
    "in": "query",
    "description": "`state` only while the last record of the key is older than this, as 30s, 5m, 2h or 1d, and `left` "
    "when it is not any more",
    "schema": {"type": "string", "pattern": SPAN},
}
LAST = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that the client has: it receives what came after it",
    "schema": {"type": "string", "pattern": TAG},
}
PROTOCOL = {
    "name": "Sec-WebSocket-Protocol",
    "in": "header",
    "description": "stateloop.v1; a page adds its token, as stateloop.bearer.<base64url>",
    "schema": {"type": "string"},
}


def event_stream(problems: dict[str, Any]) -> dict[str, Any]:
    """The operation for one key. `problems` has the responses for its problems."""
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "operationId": "watchKey",
        "summary": WATCH_KEY.summary,
        "parameters": [*WATCH_KEY.path_parameters, CURRENT, WINDOW, SILENT, LAST],
        "responses": {"200": {"description": EVENTS, "content": content}, **problems},
        "security": [{}, {"token": []}],
    }


def web_socket(problems: dict[str, Any], ref: str) -> dict[str, Any]:
    """The operation for many subscriptions. Its commands and messages are in `x-messages`, an extension."""
    switched = "A WebSocket. The commands and messages, as JSON in text frames, are in x-messages"
    return {
        "operationId": "watchMany",
        "summary": WATCH_MANY.summary,
        "parameters": [PROTOCOL],
        "responses": {"101": {"description": switched}, **problems},
        "security": [{}, {"token": []}],
        "x-messages": {"commands": _one_of(COMMANDS, ref), "messages": _one_of(MESSAGES, ref)},
    }


def _one_of(models: Sequence[type[BaseModel]], ref: str) -> dict[str, Any]:
    return {"oneOf": [{"$ref": ref.format(model=model.__name__)} for model in models]}
