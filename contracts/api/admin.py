"""The lists of states and instances, the reference tables, the test of a rule, and the monitoring of an instance."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, RootModel

from contracts.api.endpoint import Endpoint, Parameters, ResponseModel, header
from contracts.api.problems import READ_PROBLEMS, REQUEST_PROBLEMS
from contracts.api.reads import Lag, Limit, RoleName
from contracts.api.windows import Cursor


class RuleTestParameters(Parameters):
    """Parameters of a test of a rule."""

    limit: Limit = Field(default=10_000, description="The largest number of states that are read")
    cursor: Cursor = None


class RowRequest(RootModel[dict[str, Any]]):
    """The row, as the model of the table declares it."""


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


class InstancePartition(ResponseModel):
    """A partition on an instance."""

    partition: int = Field(ge=0)
    role: RoleName
    position: int | None = Field(
        ge=0,
        description="Offset of the first record that is not applied; null when the token may not read all keys",
    )
    lag: int = Field(ge=0, description="Records from there to the end of the topic")


class InstanceState(ResponseModel):
    """A state on an instance."""

    watermark: int = Field(description="Start of the newest window that it read, or its clock; milliseconds since 1970")
    partitions: tuple[InstancePartition, ...]


class InstanceAnswer(ResponseModel):
    """An instance, as it announced itself, with the states in the scope of the token."""

    instance: str
    url: str
    owns: dict[str, tuple[int, ...]] = Field(description="The partitions that it owns, by state")
    states: dict[str, InstanceState]


class InstancesAnswer(ResponseModel):
    """The live instances, first the one that answers."""

    instances: tuple[InstanceAnswer, ...]
    partitions: dict[str, int] = Field(description="The number of partitions of each state, which locates a key")


class HealthAnswer(BaseModel):
    """Whether the instance is healthy or ready, and why not."""

    ok: bool
    why: str | None = None


class MetricsAnswer(RootModel[str]):
    """The metrics in the text format of Prometheus."""


WRITES = ("bad_request", "not_yours", "unknown_state", "changed", "not_written", *REQUEST_PROBLEMS)
IF_MATCH = header("If-Match", "The ETag of the row that is to be replaced: 412 if it has another version")
NO_ROW = header("If-None-Match", "Only if there is no row of this key: 412 if there is one", const="*")
STATES = Endpoint("/v1/states", "The states", StatesAnswer, REQUEST_PROBLEMS)
INSTANCES = Endpoint("/v1/instances", "The live instances and their partitions", InstancesAnswer, REQUEST_PROBLEMS)
TABLES = Endpoint("/v1/tables", "The reference tables", TablesAnswer, REQUEST_PROBLEMS)
PUT_ROW = Endpoint(
    "/v1/tables/{name}/{key}",
    "Write a row of a reference table",
    RowAnswer,
    (*WRITES, "too_large"),
    method="put",
    body=RowRequest,
    parameters=(IF_MATCH, NO_ROW),
)
RULE_TEST = Endpoint(
    "/v1/tables/{name}/{key}/test",
    "Test a rule of alerts against the present states before it is saved",
    RuleTestAnswer,
    (*READ_PROBLEMS, "too_large"),
    RuleTestParameters,
    method="post",
    body=RowRequest,
)
DELETE_ROW = Endpoint(
    "/v1/tables/{name}/{key}",
    "Remove a row of a reference table",
    RowAnswer,
    WRITES,
    method="delete",
    parameters=(IF_MATCH,),
)
HEALTHZ = Endpoint("/healthz", "Whether the instance makes progress", HealthAnswer)
READYZ = Endpoint("/readyz", "Whether the instance answers for its partitions", HealthAnswer)
METRICS = Endpoint(
    "/metrics", "The metrics", MetricsAnswer, ("not_yours", *REQUEST_PROBLEMS), content_type="text/plain"
)
