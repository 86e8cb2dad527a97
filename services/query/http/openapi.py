"""The OpenAPI 3.1 document, from the models: `python -m services.query.http.openapi docs/reference/openapi.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web
from pydantic.json_schema import models_json_schema

from services.query.console import models as console
from services.query.console.parameters import DeadLettersQuery, LoopQuery
from services.query.http import openapi_watch as watches
from services.query.http import parameters
from services.query.http import response_models as models
from services.query.http.responses import JSON, SECURITY, HttpResponse
from services.query.lookup.problems import CONTENT_TYPE, TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import BaseModel

NOTHING: Mapping[str, Any] = {}
REF = "#/components/schemas/{model}"
READS = ("bad_request", "no_token", "not_yours", "unknown_state", "elsewhere", "too_many", "failed", "unreachable")
LOOP = ("bad_request", "no_token", "not_yours", "too_many", "failed")
ANYWHERE = ("other_host",)
KEYED = (*READS, "expired", "misplaced")
NAME = {"name": "name", "in": "path", "required": True, "description": "The state's name", "schema": {"type": "string"}}
KEY = {
    "name": "key",
    "in": "path",
    "required": True,
    "description": "The key, percent-encoded: any text, `/` included",
    "schema": {"type": "string", "minLength": 1},
}
NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "ETags that the client has: 304 if the present one is among them",
    "schema": {"type": "string"},
}
HEADERS = {
    "ETag": "Names the version of the key",
    "Stateloop-Role": "What the instance is to the key's partition",
    "Stateloop-Lag": "Records that it is behind",
    "Stateloop-Instance": "Who answered",
}


class Operation(NamedTuple):
    """One path with its method. `problems` are the kinds that it may answer with."""

    path: str
    summary: str
    answer: type[BaseModel]
    problems: tuple[str, ...] = ()
    query: type[BaseModel] | None = None
    method: str = "get"
    body: type[BaseModel] | None = None
    at: tuple[dict[str, Any], ...] = ()
    keyed: bool = False


OPERATIONS = (
    Operation("/v1/states", "The states that can be asked", models.StatesAnswer, ("no_token", "too_many", "failed")),
    Operation(
        "/v1/states/{name}",
        "Keys in their order, a page at a time",
        models.PageAnswer,
        READS,
        parameters.PageParameters,
        at=(NAME,),
    ),
    Operation(
        "/v1/states/{name}/{key}",
        "What is known of a key now",
        models.KeyAnswer,
        KEYED,
        parameters.KeyParameters,
        at=(NAME, KEY, NONE_MATCH),
        keyed=True,
    ),
    Operation(
        "/v1/states/{name}/{key}/versions",
        "The versions of a key that are kept",
        models.VersionsAnswer,
        KEYED,
        parameters.VersionsParameters,
        at=(NAME, KEY),
    ),
    Operation(
        "/v1/states/{name}:batchGet",
        "Many keys at once",
        models.BatchAnswer,
        (*READS, "too_large"),
        method="post",
        body=parameters.BatchRequest,
        at=(NAME,),
    ),
    Operation(
        "/v1/loop",
        "How the loop is: its parts, topics and APIs, what is the matter, and its history",
        console.LoopResponse,
        (*LOOP, "catching_up"),
        LoopQuery,
    ),
    Operation(
        "/v1/loop/graph",
        "The enrichments with what they need, and what becomes of their requests",
        console.GraphResponse,
        (*LOOP, "catching_up"),
    ),
    Operation(
        "/v1/loop/dead_letters",
        "Dead letters by reason, and the latest",
        console.DeadLettersResponse,
        LOOP,
        DeadLettersQuery,
    ),
    Operation("/healthz", "Whether it needs no restart", models.HealthAnswer),
    Operation("/readyz", "Whether it answers for what is its own", models.HealthAnswer),
)


def document() -> dict[str, Any]:
    """The whole document."""
    named: set[type[BaseModel]] = {
        models.ProblemAnswer,
        *watches.MODELS,
        *(operation.answer for operation in OPERATIONS),
    }
    named |= {operation.body for operation in OPERATIONS if operation.body}
    ordered = sorted(named, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(one, "validation") for one in ordered], ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    keyed, many = _problems((*ANYWHERE, *watches.KEYED)), _problems((*ANYWHERE, *watches.PROBLEMS))
    paths["/v1/states/{name}/{key}/watch"] = {"get": watches.event_stream((NAME, KEY), keyed)}
    paths["/v1/watch"] = {"get": watches.web_socket(many, REF)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stateloop states",
            "version": "1",
            "summary": "The named states of an application, by key. They can be read, never written.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def written() -> str:
    """The document as the repository has it."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


class OpenApiRoutes:
    """Serves it. It needs no token, and tells of no state."""

    def __init__(self) -> None:
        headers = (("Content-Type", JSON), ("Cache-Control", "max-age=3600"), *SECURITY)
        self._reply = HttpResponse(200, headers, json.dumps(document()).encode())

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routed."""
        return [web.get("/openapi.json", self.get)]

    async def get(self, _: web.Request) -> web.Response:
        """The document."""
        return self._reply.response()


def _operation(operation: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": f"{operation.method}{''.join(part.title() for part in _words(operation.path))}",
        "summary": operation.summary,
        "parameters": [*operation.at, *_query(operation.query)],
        "responses": _responses(operation),
    }
    if operation.path.startswith("/v1/"):
        told["security"] = [{}, {"token": []}]
    if operation.body:
        told["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(operation.body)}}}
    return told


def _responses(operation: Operation) -> dict[str, Any]:
    ok: dict[str, Any] = {"description": "The answer", "content": {JSON: {"schema": _ref(operation.answer)}}}
    found: dict[str, Any] = {"200": ok}
    if operation.keyed:
        headers = {name: {"description": told, "schema": {"type": "string"}} for name, told in HEADERS.items()}
        ok["headers"] = headers
        found["304"] = {"description": "The client has it already", "headers": headers}
    if operation.answer is models.HealthAnswer:
        found["503"] = ok | {"description": "Why not"}
    return dict(sorted({**found, **_problems((*ANYWHERE, *operation.problems), found)}.items()))


def _problems(kinds: Iterable[str], beside: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """The responses of these problems, by status; several of one status, or `beside` another answer, share it."""
    found: dict[str, Any] = {}
    for kind in kinds:
        status, title = TITLES[kind]
        content = {CONTENT_TYPE: {"schema": _ref(models.ProblemAnswer)}}
        alone = str(status) not in found and str(status) not in beside
        found[str(status)] = {"description": title if alone else "See type", "content": content}
    return dict(sorted(found.items()))


def _query(model: type[BaseModel] | None) -> list[dict[str, Any]]:
    """The model's fields as parameters."""
    if model is None:
        return []
    schema = model.model_json_schema(ref_template=REF)
    found = []
    for name, field in schema["properties"].items():
        told = _plain(field)
        one = {"name": name, "in": "query", "schema": told, "description": told.pop("description", "")}
        found.append(one | ({"style": "form", "explode": True} if told.get("type") == "array" else {}))
    return found


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """A query says nothing rather than null."""
    told = {name: value for name, value in field.items() if name not in ("title", "default", "anyOf")}
    choices = [one for one in field.get("anyOf", []) if one != {"type": "null"}]
    return told | (choices[0] if choices else {})


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REF.format(model=model.__name__)}


def _words(path: str) -> list[str]:
    return [word for word in path.replace("{", "/").replace("}", "/").replace(":", "/").split("/") if word]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(written(), encoding="utf-8")
