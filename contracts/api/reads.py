"""Reads of keys: by key, in a batch, and in pages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, RootModel

from contracts.api.endpoint import Endpoint, Parameters, ResponseModel, Text, header
from contracts.api.problems import READ_PROBLEMS, ProblemAnswer

RoleName = Literal["owner", "standby", "catching_up", "elsewhere"]
REFERENCE = r"^(-?[0-9]{1,15}\.([0-9]{1,19}\.)?)?[0-9]{1,19}(\.closed)?$"
"""A version of a key, as clients write it."""
PATHS = r"^[^.,]+(\.[^.,]+)*(,[^.,]+(\.[^.,]+)*)*$"
SPAN = r"^[0-9]{1,9}[smhd]?$"
PARTITION_AND_OFFSET = r"^[0-9]{1,9}:[0-9]{1,19}$"
Fields = Annotated[
    str | None,
    Field(pattern=PATHS, max_length=4096, description="Paths of the value to return, as state.status,state.delay"),
]
At = Annotated[
    AwareDatetime | None,
    Field(description="In a windowed state: the newest of the key's windows that contains this time"),
]
Limit = Annotated[int, Field(ge=1, le=100_000)]
Where = Annotated[tuple[str, ...], Field(max_length=16, description="path:value of a declared index; may be repeated")]
Partitions = Annotated[
    str | None, Field(pattern="^[0-9]{1,6}(,[0-9]{1,6})*$", description="Keys of these partitions only")
]


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


class VersionsParameters(Parameters):
    """Parameters of a GET of the versions of a key."""

    fields: Fields = None
    at: At = None


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


class BatchRequest(Parameters):
    """The body of a batch."""

    keys: tuple[Text, ...] = Field(description="The keys, answered in this order")
    fields: Fields = None
    at: At = None


class Lag(ResponseModel):
    """How far the instance is behind the topic."""

    records: int = Field(ge=0)


class SourceRecord(ResponseModel):
    """The record of an answer."""

    topic: str
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)


class KeyAnswer(ResponseModel):
    """One version of a key."""

    state: str
    key: str
    epoch: int = Field(description="The epoch of the state that the version counts in; 0 where records have none")
    version: int
    window_start: AwareDatetime | None = Field(description="Start of the key's window; null in a state without windows")
    event_time: AwareDatetime
    age_ms: int = Field(ge=0, description="Milliseconds since the event time, by the instance's clock")
    source: SourceRecord
    lag: Lag
    role: RoleName = Field(description="What the instance is to the key's partition")
    instance: str = Field(description="The instance that answered")
    value: Any = Field(description="The record as it is on the topic, or the part of it that was requested")


class WindowAnswer(KeyAnswer):
    """One version of a window of a key, in a windowed state."""

    window_start: AwareDatetime = Field(description="Start of the window")
    window_end: AwareDatetime = Field(description="End of the window")
    is_open: bool = Field(description="Whether a later version may come: the job has not passed its end and the grace")


class CurrentAnswer(RootModel[WindowAnswer | KeyAnswer]):
    """A version of a key; in a windowed state, of one of its windows."""


class BatchAnswer(ResponseModel):
    """An answer or a problem for each key, in the order of the request."""

    answers: tuple[WindowAnswer | KeyAnswer | ProblemAnswer, ...]


class PageAnswer(ResponseModel):
    """The next keys in their order; with `silent_for`, those silent longest first."""

    items: tuple[WindowAnswer | KeyAnswer, ...]
    after: str | None = Field(description="Write it as after= to get the next page; null: there is none")


class VersionsAnswer(ResponseModel):
    """The versions that are kept, the earliest first."""

    versions: tuple[WindowAnswer | KeyAnswer, ...]


KEYED = (*READ_PROBLEMS, "expired", "no_window", "misplaced")
PAGE = Endpoint("/v1/states/{name}", "Keys in their order, a page at a time", PageAnswer, READ_PROBLEMS, PageParameters)
KEY = Endpoint(
    "/v1/states/{name}/{key}",
    "The present value of a key",
    CurrentAnswer,
    KEYED,
    KeyParameters,
    parameters=(header("If-None-Match", "ETags that the client has: 304 if one of them is the present one"),),
    keyed=True,
)
VERSIONS = Endpoint(
    "/v1/states/{name}/{key}/versions",
    "The versions of a key that are kept",
    VersionsAnswer,
    KEYED,
    VersionsParameters,
)
BATCH = Endpoint(
    "/v1/states/{name}:batchGet",
    "Many keys at once",
    BatchAnswer,
    (*READ_PROBLEMS, "too_large"),
    method="post",
    body=BatchRequest,
)
