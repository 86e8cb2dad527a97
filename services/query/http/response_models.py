"""The bodies of responses, as models for the OpenAPI document. AnswerEncoder writes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel

RoleName = Literal["owner", "standby", "catching_up", "elsewhere"]


class ResponseModel(BaseModel):
    """A response. All of its members are present."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


class ProblemAnswer(BaseModel):
    """Why there is no answer (RFC 9457), with further members by type."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str = Field(description="The type of problem, as never_seen, expired, catching_up")
    title: str
    status: int
    detail: str = Field(description="What to do")


class BatchAnswer(ResponseModel):
    """An answer or a problem for each key, in the order of the request."""

    answers: tuple[WindowAnswer | KeyAnswer | ProblemAnswer, ...]


class RowAnswer(ResponseModel):
    """A row of a reference table that was written, or removed."""

    table: str
    key: str
    version: int = Field(description="The offset of its record, and the version of the state of this key")


class TableAnswer(ResponseModel):
    """A reference table. Its rows are the named state of the same name."""

    name: str
    topic: str
    application: str
    alerts: tuple[str, ...] = Field(description="The states with the alerts whose rules are the rows of the table")
    writes: bool = Field(description="Whether the token may write rows: those whose key has one of the prefixes")
    prefixes: tuple[str, ...] = Field(description="The prefixes of the keys that the token reads; the empty one is all")
    json_schema: dict[str, Any] = Field(alias="schema", description="The JSON Schema of a row")


class TablesAnswer(ResponseModel):
    """The tables in the scope of the token: first those with rules of alerts."""

    tables: tuple[TableAnswer, ...]


class RuleTestKeys(ResponseModel):
    """A number of keys, and the first of them."""

    count: int = Field(ge=0)
    keys: tuple[str, ...]


class AlertChanges(ResponseModel):
    """The changes in the alerts of one state when the rule is saved, of the keys that were read."""

    alerts: str
    evaluated: int = Field(ge=0, description="States that the rule applies to")
    open: int = Field(ge=0, description="Of them, those that have an open alert of the rule after it is saved")
    pending: int = Field(ge=0, description="Of them, those that have a pending one, which opens after `hold`")
    opening: RuleTestKeys = Field(description="Keys with an open alert after, and none before")
    closing: RuleTestKeys = Field(description="Keys with an open alert before, and none after")
    failed: int = Field(ge=0, description="States for which the condition raised")
    failure: str | None = Field(description="What it raised first")


class RuleTestAnswer(ResponseModel):
    """The test of a rule: the sums of all pages are the result."""

    table: str
    key: str
    results: tuple[AlertChanges, ...]
    cursor: str | None = Field(description="Write it as cursor= to test the rest; null: all keys were read")


class PageAnswer(ResponseModel):
    """The next keys in their order; with `silent_for`, those silent longest first."""

    items: tuple[WindowAnswer | KeyAnswer, ...]
    after: str | None = Field(description="Write it as after= to get the next page; null: there is none")


class VersionsAnswer(ResponseModel):
    """The versions that are kept, the earliest first."""

    versions: tuple[WindowAnswer | KeyAnswer, ...]


class WindowsAnswer(ResponseModel):
    """The next windows of a key in the requested order."""

    windows: tuple[WindowAnswer, ...]
    cursor: str | None = Field(description="Write it as cursor= to get the next page; null: there is none")


class CoverageInterval(ResponseModel):
    """A half-open interval of time: with data, without data, not passed yet, or not remembered."""

    kind: Literal["data", "gap", "open", "unknown"]
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


class PartitionAnswer(ResponseModel):
    """The role of the instance for a partition."""

    partition: int
    role: RoleName
    lag: Lag


class CoverageFieldAnswer(ResponseModel):
    """A Coverage field of a windowed state."""

    path: str
    step_s: float = Field(gt=0)


class StateAnswer(ResponseModel):
    """A state. `lag` and `keys` are those of this instance."""

    name: str
    topic: str
    keys: int | None = Field(
        description="About how many, remembered expired windows included; in a windowed state, of all windows together;"
        " null when the token may not read all"
    )
    lag: Lag
    partitions: tuple[PartitionAnswer, ...]
    misplaced: int | None = Field(
        description="Keys of a sample in another partition than murmur2 names; reads may not find them; null as keys"
    )
    lifetime_s: float | None
    window_s: float | None = Field(description="The size of a window; null in a state that is not windowed")
    every_s: float | None = Field(description="From the start of a window to that of the next one; null as window_s")
    remember_s: float | None = Field(description="For how long a closed window can be read; null as window_s")
    stale_after_s: float
    history: int
    indexes: tuple[str, ...]
    silence: bool = Field(description="Whether keys can be selected by the time since their last record: silent_for")
    coverage: tuple[CoverageFieldAnswer, ...] = Field(description="The Coverage fields, of which coverage is queried")
    json_schema: dict[str, Any] = Field(alias="schema", description="The JSON Schema of the records")


class StatesAnswer(ResponseModel):
    """The states in the scope of the token."""

    instance: str
    states: tuple[StateAnswer, ...]


class HealthAnswer(BaseModel):
    """Whether the instance is healthy or ready, and why not."""

    ok: bool
    why: str | None = None
