"""The operations of the states and of monitoring, for the OpenAPI document."""

from __future__ import annotations

from services.query.http import parameters
from services.query.http import response_models as models
from services.query.http.openapi import KEY, NAME, Operation

READS = ("bad_request", "no_token", "not_yours", "unknown_state", "elsewhere", "too_many", "failed", "unreachable")
KEYED = (*READS, "expired", "no_window", "misplaced")
NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "ETags that the client has: 304 if one of them is the present one",
    "schema": {"type": "string"},
}
TIME = {
    "name": "time",
    "in": "path",
    "required": True,
    "description": "The start of the window, any time in it, or now. Of overlapping windows the newest one",
    "schema": {"anyOf": [{"type": "string", "format": "date-time"}, {"const": "now"}]},
}

STATES = (
    Operation("/v1/states", "The states", models.StatesAnswer, ("no_token", "too_many", "failed")),
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
        "The present value of a key",
        models.CurrentAnswer,
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
        "/v1/states/{name}/{key}/windows",
        "The windows of a key of a windowed state",
        models.WindowsAnswer,
        READS,
        parameters.WindowsParameters,
        at=(NAME, KEY),
    ),
    Operation(
        "/v1/states/{name}/{key}/coverage",
        "Where a key of a windowed state has data, and where gaps",
        models.CoverageAnswer,
        (*READS, "never_seen", "expired", "misplaced"),
        parameters.CoverageParameters,
        at=(NAME, KEY),
    ),
    Operation(
        "/v1/states/{name}/windows/{time}",
        "The keys of one window of a windowed state",
        models.WindowPageAnswer,
        READS,
        parameters.WindowPageParameters,
        at=(NAME, TIME),
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
)
MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of the row that is to be replaced: 412 if it has another version",
    "schema": {"type": "string"},
}
WRITES = ("bad_request", "no_token", "not_yours", "unknown_state", "changed", "too_many", "failed", "not_written")
NO_ROW = {
    "name": "If-None-Match",
    "in": "header",
    "description": "Only if there is no row of this key: 412 if there is one",
    "schema": {"const": "*"},
}
TABLES = (
    Operation("/v1/tables", "The reference tables", models.TablesAnswer, ("no_token", "too_many", "failed")),
    Operation(
        "/v1/tables/{name}/{key}",
        "Write a row of a reference table",
        models.RowAnswer,
        (*WRITES, "too_large"),
        method="put",
        body=parameters.RowRequest,
        at=(NAME, KEY, MATCH, NO_ROW),
    ),
    Operation(
        "/v1/tables/{name}/{key}/test",
        "Test a rule of alerts against the present states before it is saved",
        models.RuleTestAnswer,
        (*READS, "too_large"),
        parameters.RuleTestParameters,
        method="post",
        body=parameters.RowRequest,
        at=(NAME, KEY),
    ),
    Operation(
        "/v1/tables/{name}/{key}",
        "Remove a row of a reference table",
        models.RowAnswer,
        WRITES,
        method="delete",
        at=(NAME, KEY, MATCH),
    ),
)
MONITORING = (
    Operation("/healthz", "Whether the instance makes progress", models.HealthAnswer),
    Operation("/readyz", "Whether the instance answers for its partitions", models.HealthAnswer),
)
