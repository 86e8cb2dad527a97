"""An endpoint of the query service: its path, parameters, answer and problems. OpenAPI is generated from it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_QUERY: Mapping[str, object] = MappingProxyType({})


def _path_parameter(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def query_parameter(name: str, description: str, **schema: Any) -> dict[str, Any]:
    """Return the OpenAPI parameter of a query that no model has."""
    return {"name": name, "in": "query", "description": description, "schema": schema}


def header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    """Return the OpenAPI parameter of a request header, by default of any text."""
    return {"name": name, "in": "header", "description": description, "schema": schema or {"type": "string"}}


NAME = _path_parameter("name", "The state's name", type="string")
KEY = _path_parameter("key", "The key, percent-encoded: any text, `/` included", type="string", minLength=1)
TIME = _path_parameter(
    "time",
    "The start of the window, any time in it, or now. Of overlapping windows the newest one",
    anyOf=[{"type": "string", "format": "date-time"}, {"const": "now"}],
)
PATH_PARAMETERS = {"{name}": NAME, "{key}": KEY, "{time}": TIME}


class Endpoint(NamedTuple):
    """A method and path, with the models of the answer (of a watch: its messages), the query and the body.

    `problems` has the types of problems that it may respond with, `parameters` the OpenAPI parameters of its request
    headers. The answer of a `keyed` one has an ETag. `content_type` is that of the answer.
    """

    path: str
    summary: str
    answer: type[BaseModel]
    problems: tuple[str, ...] = ()
    query: type[BaseModel] | None = None
    method: str = "get"
    body: type[BaseModel] | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    keyed: bool = False
    content_type: str = "application/json"

    @property
    def needs_token(self) -> bool:
        """Whether it answers no request without a token, where tokens are required."""
        return "no_token" in self.problems

    @property
    def path_parameters(self) -> list[dict[str, Any]]:
        """The OpenAPI parameters of the path."""
        return [parameter for name, parameter in PATH_PARAMETERS.items() if name in self.path]

    def target(self, query: Mapping[str, object] = NO_QUERY, **segments: str) -> str:
        """Return the path with these segments, and the query. All are percent-encoded, slashes too.

        A parameter that is None or empty is left out, and one with a list is repeated.
        """
        path = self.path.format(**{name: quote(value, safe="") for name, value in segments.items()})
        pairs = [
            f"{name}={quote(str(item), safe='')}"
            for name, value in query.items()
            for item in (value if isinstance(value, list) else (value,))
            if item not in {None, ""}
        ]
        return f"{path}?{'&'.join(pairs)}" if pairs else path


def _encodable(value: str) -> str:
    """Return a text that UTF-8 can encode."""
    value.encode()
    return value


Text = Annotated[str, AfterValidator(_encodable)]


class Parameters(BaseModel):
    """The query of a request. Unknown parameters are rejected, so that typing errors are noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ResponseModel(BaseModel):
    """A response. All of its members are present."""

    model_config = ConfigDict(extra="forbid", frozen=True)
