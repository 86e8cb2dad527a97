"""Reads of windowed states: the windows of a key, the keys of a window, and coverage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from contracts.api.endpoint import Endpoint, Parameters, ResponseModel, Text
from contracts.api.problems import READ_PROBLEMS
from contracts.api.reads import Fields, Lag, Limit, Partitions, RoleName, Where, WindowAnswer

IntervalKind = Literal["data", "gap", "open", "unknown"]
Cursor = Annotated[
    str | None, Field(max_length=4096, description="`cursor` of the last page; the other parameters stay the same")
]


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


class WindowsAnswer(ResponseModel):
    """The next windows of a key in the requested order."""

    windows: tuple[WindowAnswer, ...]
    cursor: str | None = Field(description="Write it as cursor= to get the next page; null: there is none")


class CoverageInterval(ResponseModel):
    """A half-open interval of time: with data, without data, not passed yet, or not remembered."""

    kind: IntervalKind
    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime = Field(alias="to")


class CoverageAnswer(ResponseModel):
    """The intervals of a time range, which follow each other without holes."""

    state: str
    key: str
    field: str = Field(description="Path of the Coverage field")
    step_s: float = Field(gt=0, description="The resolution in seconds: a step with any data is covered")
    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime = Field(alias="to", description="To where the range is answered")
    next: AwareDatetime | None = Field(description="Write it as from= to get the rest; null: there is none")
    final_until: AwareDatetime = Field(
        description="Before it, all windows are closed: the intervals change no more. 1970: none is"
    )
    intervals: tuple[CoverageInterval, ...]
    lag: Lag
    role: RoleName = Field(description="What the instance is to the key's partition")
    instance: str = Field(description="The instance that answered")


class WindowPageAnswer(ResponseModel):
    """The next keys of a window. The window is null if there are none on this page."""

    window_start: AwareDatetime | None
    window_end: AwareDatetime | None
    is_open: bool | None
    items: tuple[WindowAnswer, ...]
    cursor: str | None = Field(description="Write it as cursor= to get the next page; null: there is none")


WINDOWS = Endpoint(
    "/v1/states/{name}/{key}/windows",
    "The windows of a key of a windowed state",
    WindowsAnswer,
    READ_PROBLEMS,
    WindowsParameters,
)
COVERAGE = Endpoint(
    "/v1/states/{name}/{key}/coverage",
    "Where a key of a windowed state has data, and where gaps",
    CoverageAnswer,
    (*READ_PROBLEMS, "never_seen", "expired", "misplaced"),
    CoverageParameters,
)
WINDOW_PAGE = Endpoint(
    "/v1/states/{name}/windows/{time}",
    "The keys of one window of a windowed state",
    WindowPageAnswer,
    READ_PROBLEMS,
    WindowPageParameters,
)
