"""The operations of the console, for the OpenAPI document."""

from __future__ import annotations

from contracts.api.endpoint import Endpoint
from services.query.console import models
from services.query.console.parameters import ApplicationQuery, DeadLettersQuery, LoopQuery

LOOP = ("bad_request", "no_token", "not_yours", "unknown_application", "too_many", "failed")
OPERATIONS = (
    Endpoint(
        "/v1/loop",
        "The health of an application's loop: its processes, topics and APIs, with their history",
        models.LoopResponse,
        (*LOOP, "catching_up"),
        LoopQuery,
    ),
    Endpoint(
        "/v1/loop/graph",
        "The enrichments with their inputs, and the outcomes of their requests",
        models.GraphResponse,
        (*LOOP, "catching_up"),
        ApplicationQuery,
    ),
    Endpoint(
        "/v1/loop/dead_letters",
        "Dead letters by reason, and the latest",
        models.DeadLettersResponse,
        LOOP,
        DeadLettersQuery,
    ),
)
