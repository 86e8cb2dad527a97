"""The bodies of responses, as models for the OpenAPI document. AnswerEncoder writes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

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


class ProblemAnswer(BaseModel):
    """Why there is no answer (RFC 9457), with further members by type."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str = Field(description="The type of problem, as never_seen, expired, catching_up")
    title: str
    status: int
    detail: str = Field(description="What to do")


class BatchAnswer(ResponseModel):
    """An answer or a problem for each key, in the order of the request."""

    answers: tuple[KeyAnswer | ProblemAnswer, ...]


class PageAnswer(ResponseModel):
    """The next keys in their order."""

    items: tuple[KeyAnswer, ...]
    after: str | None = Field(description="Write it as after= to get the next page; null: there is none")


class VersionsAnswer(ResponseModel):
    """The versions that are kept, the earliest first."""

    versions: tuple[KeyAnswer, ...]


class PartitionAnswer(ResponseModel):
    """What the instance is to a partition."""

    partition: int
    role: RoleName
    lag: Lag


class StateAnswer(ResponseModel):
    """A state. `lag` and `keys` are those of this instance."""

    name: str
    topic: str
    keys: int | None = Field(
        description="About how many, remembered expired windows included; null when the token may not read all"
    )
    lag: Lag
    partitions: tuple[PartitionAnswer, ...]
    misplaced: int | None = Field(
        description="Keys of a sample in another partition than murmur2 names; reads may not find them; null as keys"
    )
    lifetime_s: float | None
    stale_after_s: float
    history: int
    indexes: tuple[str, ...]
    json_schema: dict[str, Any] = Field(alias="schema", description="The JSON Schema of the records")


class StatesAnswer(ResponseModel):
    """The states in the scope of the token."""

    instance: str
    states: tuple[StateAnswer, ...]


class HealthAnswer(BaseModel):
    """Whether the instance is healthy or ready, and why not."""

    ok: bool
    why: str | None = None
