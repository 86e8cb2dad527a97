"""What a request may say beside its path, as models: they check it, and the OpenAPI document is made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from services.query.lookup.decision import VersionReference
from services.query.lookup.problem import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

PATHS = r"^[^.,]+(\.[^.,]+)*(,[^.,]+(\.[^.,]+)*)*$"
MOST_TOLD = 3
"""How many mistakes are told; the rest is counted."""
LONGEST_TOLD = 100
"""Characters of a name that nobody knows."""
KEY_AT = 4
"""Which segment of a path is the key, in /v1/states/{name}/{key}."""
ORDER = r"^(-?[0-9]{1,15}\.([0-9]{1,19}\.)?)?[0-9]{1,19}$"
PARTITION_AND_OFFSET = r"^[0-9]{1,9}:[0-9]{1,19}$"


def _text(value: str) -> str:
    """A text that UTF-8 can hold."""
    value.encode()
    return value


Text = Annotated[str, AfterValidator(_text)]
Fields = Annotated[
    str | None,
    Field(
        pattern=PATHS, max_length=4096, description="Paths of the value that are wanted, as state.status,state.delay"
    ),
]
Model = TypeVar("Model", bound="Parameters")


class EventPosition(NamedTuple):
    """Where an event is in its topic."""

    partition: int
    offset: int


class Parameters(BaseModel):
    """The query of a request. What is not named is refused, so that a typing error is told."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class KeyParameters(Parameters):
    """Of one key."""

    fields: Fields = None
    min_version: str | None = Field(
        default=None,
        pattern=ORDER,
        description="Answer with this version or a later one, or 503: a version of the present window and epoch, or an "
        "ETag without its quotes",
    )
    min_offset: str | None = Field(
        default=None,
        pattern=PARTITION_AND_OFFSET,
        description="Answer with a state that has merged the event at this partition:offset or a later one, or 503",
    )
    wait: float = Field(
        default=0,
        ge=0,
        le=3600,
        description="Seconds to wait for min_version and min_offset, or for another than If-None-Match",
    )
    as_of: str | None = Field(
        default=None, pattern=ORDER, description="This version, while it is kept: written as min_version"
    )

    @property
    def at_least(self) -> VersionReference | None:
        """What min_version says."""
        return _order(self.min_version)

    @property
    def exactly(self) -> VersionReference | None:
        """What as_of says."""
        return _order(self.as_of)

    @property
    def event(self) -> EventPosition | None:
        """The position of the event that min_offset names."""
        if self.min_offset is None:
            return None
        number, _, offset = self.min_offset.partition(":")
        return EventPosition(int(number), int(offset))


class VersionsParameters(Parameters):
    """Of the versions of a key."""

    fields: Fields = None


class PageParameters(Parameters):
    """Of a page of keys."""

    prefix: Text = Field(default="", max_length=4096, description="Keys that begin so")
    after: Text | None = Field(
        default=None, max_length=4096, description="Keys after this one: the last page's `after`"
    )
    limit: int = Field(default=100, ge=1, le=100_000, description="How many keys at the most")
    where: tuple[str, ...] = Field(
        default=(), max_length=16, description="path:value of a declared index, several times if need be"
    )
    fields: Fields = None
    partitions: str | None = Field(
        default=None, pattern="^[0-9]{1,6}(,[0-9]{1,6})*$", description="Of these partitions only"
    )


class BatchRequest(Parameters):
    """The body of a batch."""

    keys: tuple[Text, ...] = Field(description="The keys, answered in this order")
    fields: Fields = None


def parse_query(model: type[Model], request: web.Request) -> Model:
    """The request's query. Raises ProblemError (400) that says what is wrong with which parameter."""
    said: dict[str, Any] = {}
    for name, value in request.rel_url.query.items():
        if name == "where":
            said.setdefault("where", []).append(value)
        elif name in said:
            raise ProblemError(Problem("bad_request", f"{name} is said twice"))
        else:
            said[name] = value
    return validate(model, said)


def validate(model: type[Model], said: object) -> Model:
    """The model of what was said. Raises ProblemError (400), whose text stays short whatever was said."""
    known = ", ".join(model.model_fields)
    unknown = [name for name in said if name not in model.model_fields] if isinstance(said, dict) else []
    if unknown:  # before it is read: of each one an error would be made
        named = _first([f"{name[:LONGEST_TOLD]}: there is no such parameter" for name in unknown[:MOST_TOLD]], unknown)
        raise ProblemError(Problem("bad_request", f"{named}. There are: {known}"))
    try:
        return model.model_validate(said)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        told = [f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in wrong[:MOST_TOLD]]
        raise ProblemError(Problem("bad_request", f"{_first(told, wrong)}. There are: {known}")) from None


def _order(written: str | None) -> VersionReference | None:
    """The version that is named: alone, behind its life, or, as in an ETag, behind life and epoch."""
    if written is None:
        return None
    *before, version = map(int, written.split("."))
    return VersionReference(before[0] if before else None, before[1] if len(before) > 1 else None, version)


def _first(told: Sequence[str], of: Sequence[object]) -> str:
    """What is told of the first of them, and how many more there are."""
    return "; ".join(told) + (f"; and {len(of) - len(told)} more" if len(of) > len(told) else "")


def unquote_segment(raw: str) -> str:
    """A segment of a path, as it was sent, without its percent-encoding. Raises ProblemError (400)."""
    try:
        return unquote_to_bytes(raw).decode() if "%" in raw else raw
    except UnicodeDecodeError:
        raise ProblemError(Problem("bad_request", "The path is not percent-encoded UTF-8")) from None


def key_of_request(request: web.Request) -> str:
    """The key that the path names. Aiohttp's own reading of a path leaves some of its encodings open."""
    return unquote_segment(request.rel_url.raw_path.split("/")[KEY_AT])
