"""Makes the OpenAPI 3.1 document of operations, from their models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web
from pydantic.json_schema import models_json_schema

from services.query.http import openapi_watch as watches
from services.query.http import response_models as models
from services.query.http.responses import JSON, SECURITY, HttpResponse
from services.query.lookup.problems import CONTENT_TYPE, TITLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pydantic import BaseModel

NONE: Mapping[str, Any] = {}
REF = "#/components/schemas/{model}"
ANYWHERE = ("other_host",)
NAME = {"name": "name", "in": "path", "required": True, "description": "The state's name", "schema": {"type": "string"}}
KEY = {
    "name": "key",
    "in": "path",
    "required": True,
    "description": "The key, percent-encoded: any text, `/` included",
    "schema": {"type": "string", "minLength": 1},
}
HEADERS = {
    "ETag": "The tag of the version",
    "Stateloop-Role": "What the instance is to the key's partition",
    "Stateloop-Lag": "Records that the instance has not read yet",
    "Stateloop-Instance": "The instance that answered",
}


class Operation(NamedTuple):
    """A path with its method. `problems` has the types of problems that it may respond with."""

    path: str
    summary: str
    answer: type[BaseModel]
    problems: tuple[str, ...] = ()
    query: type[BaseModel] | None = None
    method: str = "get"
    body: type[BaseModel] | None = None
    at: tuple[dict[str, Any], ...] = ()
    keyed: bool = False


def document_of(operations: Collection[Operation]) -> dict[str, Any]:
    """The document of these operations and of the watch routes."""
    named: set[type[BaseModel]] = {
        models.ProblemAnswer,
        *watches.MODELS,
        *(operation.answer for operation in operations),
    }
    named |= {operation.body for operation in operations if operation.body}
    ordered = sorted(named, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(one, "validation") for one in ordered], ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    keyed, many = _problems((*ANYWHERE, *watches.KEYED)), _problems((*ANYWHERE, *watches.PROBLEMS))
    paths["/v1/states/{name}/{key}/watch"] = {"get": watches.event_stream((NAME, KEY), keyed)}
    paths["/v1/watch"] = {"get": watches.web_socket(many, REF)}
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
        headers = (("Content-Type", JSON), ("Cache-Control", "max-age=3600"), *SECURITY)
        self._response = HttpResponse(200, headers, json.dumps(document).encode())

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [web.get("/openapi.json", self.get)]

    async def get(self, _: web.Request) -> web.Response:
        """The document."""
        return self._response.response()


def _operation(operation: Operation) -> dict[str, Any]:
    members: dict[str, Any] = {
        "operationId": f"{operation.method}{''.join(part.title() for part in _words(operation.path))}",
        "summary": operation.summary,
        "parameters": [*operation.at, *_query(operation.query)],
        "responses": _responses(operation),
    }
    if operation.path.startswith("/v1/"):
        members["security"] = [{}, {"token": []}]
    if operation.body:
        members["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(operation.body)}}}
    return members


def _responses(operation: Operation) -> dict[str, Any]:
    ok: dict[str, Any] = {"description": "The answer", "content": {JSON: {"schema": _ref(operation.answer)}}}
    found: dict[str, Any] = {"200": ok}
    if operation.keyed:
        headers = {name: {"description": members, "schema": {"type": "string"}} for name, members in HEADERS.items()}
        ok["headers"] = headers
        found["304"] = {"description": "The client has this version", "headers": headers}
    if operation.answer is models.HealthAnswer:
        found["503"] = ok | {"description": "The reason why not"}
    return dict(sorted({**found, **_problems((*ANYWHERE, *operation.problems), found)}.items()))


def _problems(kinds: Iterable[str], others: Mapping[str, Any] = NONE) -> dict[str, Any]:
    """The responses of these problems by status. Several of one status, or of one in `others`, share an entry."""
    found: dict[str, Any] = {}
    for kind in kinds:
        status, title = TITLES[kind]
        content = {CONTENT_TYPE: {"schema": _ref(models.ProblemAnswer)}}
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
