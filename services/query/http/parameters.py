"""The parameters and bodies of requests, as models that validate them. The OpenAPI document is made from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, overload
from urllib.parse import unquote_to_bytes

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, RootModel, ValidationError

from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.state_reader import EventPosition
from services.query.lookup.version_reference import REFERENCE, VersionReference, parse_reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

PATHS = r"^[^.,]+(\.[^.,]+)*(,[^.,]+(\.[^.,]+)*)*$"
MISTAKES_MAX = 3
"""How many mistakes a problem lists; the others are counted."""
NAME_MAX = 100
"""Characters of an unknown name that a problem repeats."""
KEY_SEGMENT = 4
"""The segment of /v1/states/{name}/{key} that is the key."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPAN = r"^[0-9]{1,9}[smhd]?$"
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
PARTITION_AND_OFFSET = r"^[0-9]{1,9}:[0-9]{1,19}$"


def _text(value: str) -> str:
    """A text that UTF-8 can encode."""
    value.encode()
    return value


Text = Annotated[str, AfterValidator(_text)]
Fields = Annotated[
    str | None,
    Field(pattern=PATHS, max_length=4096, description="Paths of the value to return, as state.status,state.delay"),
]
At = Annotated[
    AwareDatetime | None,
    Field(description="In a windowed state: the newest of the key's windows that contains this time"),
]
Cursor = Annotated[
    str | None, Field(max_length=4096, description="`cursor` of the last page; the other parameters stay the same")
]
Limit = Annotated[int, Field(ge=1, le=100_000)]
Where = Annotated[tuple[str, ...], Field(max_length=16, description="path:value of a declared index; may be repeated")]
Partitions = Annotated[
    str | None, Field(pattern="^[0-9]{1,6}(,[0-9]{1,6})*$", description="Keys of these partitions only")
]
Model = TypeVar("Model", bound="Parameters")


class Parameters(BaseModel):
    """The query of a request. Unknown parameters are rejected, so that typing errors are noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class KeyParameters(Parameters):
    """Parameters of a GET of one key."""

    fields: Fields = None
    min_version: str | None = Field(
        default=None,
        pattern=REFERENCE,
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
        description="Seconds to wait for min_version and min_offset, or for another version than If-None-Match",
    )
    as_of: str | None = Field(
        default=None, pattern=REFERENCE, description="This version, while it is kept: written as min_version"
    )
    at: At = None

    @property
    def at_least(self) -> VersionReference | None:
        """The version of min_version."""
        return parse_reference(self.min_version)

    @property
    def exactly(self) -> VersionReference | None:
        """The version of as_of."""
        return parse_reference(self.as_of)

    @property
    def event(self) -> EventPosition | None:
        """The event of min_offset."""
        if self.min_offset is None:
            return None
        number, _, offset = self.min_offset.partition(":")
        return EventPosition(int(number), int(offset))


class VersionsParameters(Parameters):
    """Parameters of a GET of the versions of a key."""

    fields: Fields = None
    at: At = None


class WindowsParameters(Parameters):
    """Parameters of a GET of the windows of a key."""

    start: AwareDatetime | None = Field(
        default=None, alias="from", description="Windows that start at this time or later"
    )
    end: AwareDatetime | None = Field(default=None, alias="to", description="Windows that start before this time")
    order: Literal["asc", "desc"] = Field(default="asc", description="By the start of the window")
    limit: Limit = Field(default=100, description="The largest number of windows")
    cursor: Cursor = None
    fields: Fields = None


class CoverageParameters(Parameters):
    """Parameters of a GET of the coverage of a key."""

    start: AwareDatetime | None = Field(
        default=None, alias="from", description="Start of the range; by default that of the key's oldest window"
    )
    end: AwareDatetime | None = Field(
        default=None,
        alias="to",
        description="End of the range; by default that of the newest or the present window",
    )
    field: str | None = Field(
        default=None, max_length=256, description="Path of a Coverage field; not needed if there is one only"
    )
    limit: Limit = Field(default=100, description="The largest number of windows that are read")


class PageParameters(Parameters):
    """Parameters of a GET of a page of keys."""

    prefix: Text = Field(default="", max_length=4096, description="Keys with this prefix")
    after: Text | None = Field(
        default=None, max_length=4096, description="`after` of the last page: without silent_for, keys after this one"
    )
    limit: Limit = Field(default=100, description="The largest number of keys")
    where: Where = ()
    silent_for: str | None = Field(
        default=None,
        pattern=SPAN,
        description="Only keys without a record for longer than this, as 30s, 5m, 2h or 1d, those silent longest first;"
        " of a state with QueryOptions(silence=True)",
    )
    fields: Fields = None
    partitions: Partitions = None


class WindowPageParameters(Parameters):
    """Parameters of a GET of the keys of one window."""

    prefix: Text = Field(default="", max_length=4096, description="Keys with this prefix")
    where: Where = ()
    order_by: str | None = Field(
        default=None,
        max_length=256,
        description="path or -path of a declared index: keys in the order of its number, ascending or descending",
    )
    limit: Limit = Field(default=100, description="The largest number of keys")
    cursor: Cursor = None
    fields: Fields = None
    partitions: Partitions = None


class BatchRequest(Parameters):
    """The body of a batch."""

    keys: tuple[Text, ...] = Field(description="The keys, answered in this order")
    fields: Fields = None
    at: At = None


class RuleTestParameters(Parameters):
    """Parameters of a test of a rule."""

    limit: Limit = Field(default=10_000, description="The largest number of states that are read")
    cursor: Cursor = None


class RowRequest(RootModel[dict[str, Any]]):
    """The row, as the model of the table declares it."""


def parse_query(model: type[Model], request: web.Request) -> Model:
    """The query of the request. Raises ProblemError (400) that names the wrong parameters."""
    members: dict[str, Any] = {}
    for name, value in request.rel_url.query.items():
        if name == "where":
            members.setdefault("where", []).append(value)
        elif name in members:
            raise ProblemError(Problem("bad_request", f"{name} appears twice"))
        else:
            members[name] = value
    return validate(model, members)


def validate(model: type[Model], members: object) -> Model:
    """The model with these members. Raises ProblemError (400), whose text is short whatever the members are."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    known = ", ".join(names)
    unknown = [name for name in members if name not in names] if isinstance(members, dict) else []
    if unknown:  # before validation, which would make one error for each
        mistakes = [f"{name[:NAME_MAX]}: unknown parameter" for name in unknown[:MISTAKES_MAX]]
        raise ProblemError(Problem("bad_request", f"{_list(mistakes, unknown)}. Known: {known}"))
    try:
        return model.model_validate(members)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
        mistakes = [f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in errors[:MISTAKES_MAX]]
        raise ProblemError(Problem("bad_request", f"{_list(mistakes, errors)}. Known: {known}")) from None


def _list(mistakes: Sequence[str], of: Sequence[object]) -> str:
    """The first mistakes, and the number of the others."""
    return "; ".join(mistakes) + (f"; and {len(of) - len(mistakes)} more" if len(of) > len(mistakes) else "")


@overload
def milliseconds_at(time: datetime) -> int: ...


@overload
def milliseconds_at(time: datetime | None) -> int | None: ...


def milliseconds_at(time: datetime | None) -> int | None:
    """A time in milliseconds since 1970."""
    return None if time is None else (time - _EPOCH) // timedelta(milliseconds=1)


def seconds_of(span: str) -> int:
    """The seconds of a text that matches SPAN; without a unit, they are meant."""
    unit = SECONDS.get(span[-1])
    return int(span) if unit is None else int(span[:-1]) * unit


def unquote_segment(raw: str) -> str:
    """A segment of a path without its percent-encoding. Raises ProblemError (400)."""
    try:
        return unquote_to_bytes(raw).decode() if "%" in raw else raw
    except UnicodeDecodeError:
        raise ProblemError(Problem("bad_request", "The path is not percent-encoded UTF-8")) from None


def key_of_request(request: web.Request) -> str:
    """The key in the path. aiohttp's own decoding of a path leaves some encodings as they are."""
    return unquote_segment(request.rel_url.raw_path.split("/")[KEY_SEGMENT])
