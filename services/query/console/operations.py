"""The operations of the console, for the OpenAPI document."""

from __future__ import annotations

from services.query.console import models
from services.query.console.parameters import DeadLettersQuery, LoopQuery
from services.query.http.openapi import Operation

LOOP = ("bad_request", "no_token", "not_yours", "too_many", "failed")
OPERATIONS = (
    Operation(
        "/v1/loop",
        "The health of the loop: its processes, topics and APIs, with their history",
        models.LoopResponse,
        (*LOOP, "catching_up"),
        LoopQuery,
    ),
    Operation(
        "/v1/loop/graph",
        "The enrichments with their inputs, and the outcomes of their requests",
        models.GraphResponse,
        (*LOOP, "catching_up"),
    ),
    Operation(
        "/v1/loop/dead_letters",
        "Dead letters by reason, and the latest",
        models.DeadLettersResponse,
        LOOP,
        DeadLettersQuery,
    ),
)
