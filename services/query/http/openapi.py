"""Makes the OpenAPI 3.1 document of endpoints, from their models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web
from pydantic.json_schema import models_json_schema

from contracts.api.admin import HealthAnswer
from contracts.api.problems import TITLES, ProblemAnswer
from contracts.api.watch import COMMANDS, MESSAGES, WATCH_KEY, WATCH_MANY
from services.query.http.responses import JSON, SECURITY, HttpResponse, header_lines
from services.query.lookup.problems import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pydantic import BaseModel

    from contracts.api.endpoint import Endpoint

NONE: Mapping[str, Any] = {}
REF = "#/components/schemas/{model}"
ANYWHERE = ("other_host",)
SECURED: list[dict[str, Any]] = [{}, {"token": []}]
"""Without a token, or with one: the settings of the instance decide."""
EVENTS = (
    "Server-sent events. `state`: the answer that a GET of the key returns; its id is the tag of the version. "
    "`never_seen`, `removed`, `expired`, `left`: the key has no value, or is not silent. "
    "`mark`: how far the client and the instance are behind. "
    "`reset`: changes were lost. `problem`: the last event, when the token may not read the key any more."
)
SOCKET = "A WebSocket. The commands and messages, as JSON in text frames, are in x-messages"
HEADERS = {
    "ETag": "The tag of the version",
    "Stateloop-Role": "What the instance is to the key's partition",
    "Stateloop-Lag": "Records that the instance has not read yet",
    "Stateloop-Instance": "The instance that answered",
}


def document_of(endpoints: Collection[Endpoint]) -> dict[str, Any]:
    """The document of these endpoints and of the watch routes."""
    named: set[type[BaseModel]] = {
        ProblemAnswer,
        *COMMANDS,
        *MESSAGES,
        *(endpoint.answer for endpoint in endpoints),
    }
    named |= {endpoint.body for endpoint in endpoints if endpoint.body}
    ordered = sorted(named, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(one, "validation") for one in ordered], ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method] = _operation(endpoint)
    paths[WATCH_KEY.path], paths[WATCH_MANY.path] = {"get": _event_stream()}, {"get": _web_socket()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stateloop states",
            "version": "1",
            "summary": "The named states of an application, by key. They are read-only.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class OpenApiRoutes:
    """Serves the document. It needs no token, and contains no state."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        headers = header_lines(("Content-Type", JSON), ("Cache-Control", "max-age=3600"), *SECURITY)
        self._response = HttpResponse(200, headers, json.dumps(document).encode())

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [web.get("/openapi.json", self.get)]

    async def get(self, _: web.Request) -> web.Response:
        """The document."""
        return self._response.response()


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    members: dict[str, Any] = {
        "operationId": f"{endpoint.method}{''.join(part.title() for part in _words(endpoint.path))}",
        "summary": endpoint.summary,
        "parameters": [*endpoint.path_parameters, *endpoint.parameters, *_query(endpoint.query)],
        "responses": _responses(endpoint),
    }
    if endpoint.needs_token:
        members["security"] = SECURED
    if endpoint.body:
        members["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(endpoint.body)}}}
    return members


def _event_stream() -> dict[str, Any]:
    """The operation for one key. OpenAPI has no streams: the events are described."""
    content = {WATCH_KEY.content_type: {"schema": {"type": "string"}}}
    return _watch(WATCH_KEY, "watchKey", {"200": {"description": EVENTS, "content": content}})


def _web_socket() -> dict[str, Any]:
    """The operation for many subscriptions. Its commands and messages are in `x-messages`, an extension."""
    models: dict[str, Sequence[type[BaseModel]]] = {"commands": COMMANDS, "messages": MESSAGES}
    messages = {side: {"oneOf": [_ref(model) for model in several]} for side, several in models.items()}
    return {**_watch(WATCH_MANY, "watchMany", {"101": {"description": SOCKET}}), "x-messages": messages}


def _watch(endpoint: Endpoint, name: str, ok: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": endpoint.summary,
        "parameters": [*endpoint.path_parameters, *endpoint.parameters],
        "responses": {**ok, **_problems((*ANYWHERE, *endpoint.problems))},
        "security": SECURED,
    }


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    content = {endpoint.content_type: {"schema": _ref(endpoint.answer)}}
    ok: dict[str, Any] = {"description": "The answer", "content": content}
    found: dict[str, Any] = {"200": ok}
    if endpoint.keyed:
        headers = {name: {"description": members, "schema": {"type": "string"}} for name, members in HEADERS.items()}
        ok["headers"] = headers
        found["304"] = {"description": "The client has this version", "headers": headers}
    if endpoint.answer is HealthAnswer:
        found["503"] = ok | {"description": "The reason why not"}
    return dict(sorted({**found, **_problems((*ANYWHERE, *endpoint.problems), found)}.items()))


def _problems(kinds: Iterable[str], others: Mapping[str, Any] = NONE) -> dict[str, Any]:
    """The responses of these problems by status. Several of one status, or of one in `others`, share an entry."""
    found: dict[str, Any] = {}
    for kind in kinds:
        status, title = TITLES[kind]
        content = {CONTENT_TYPE: {"schema": _ref(ProblemAnswer)}}
        alone = str(status) not in found and str(status) not in others
        found[str(status)] = {"description": title if alone else "See type", "content": content}
    return dict(sorted(found.items()))


def _query(model: type[BaseModel] | None) -> list[dict[str, Any]]:
    """The fields of the model as parameters."""
    if model is None:
        return []
    schema = model.model_json_schema(ref_template=REF)
    found = []
    for name, field in schema["properties"].items():
        members = _plain(field)
        one = {"name": name, "in": "query", "schema": members, "description": members.pop("description", "")}
        found.append(one | ({"style": "form", "explode": True} if members.get("type") == "array" else {}))
    return found


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field without null: an absent parameter is left out."""
    members = {name: value for name, value in field.items() if name not in ("title", "default", "anyOf")}
    choices = [one for one in field.get("anyOf", []) if one != {"type": "null"}]
    return members | (choices[0] if choices else {})


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REF.format(model=model.__name__)}


def _words(path: str) -> list[str]:
    return [word for word in path.replace("{", "/").replace("}", "/").replace(":", "/").split("/") if word]
