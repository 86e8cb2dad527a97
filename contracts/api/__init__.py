"""The HTTP API of the query service: its endpoints, which the service and its client share."""

from contracts.api.admin import DELETE_ROW, HEALTHZ, INSTANCES, METRICS, PUT_ROW, READYZ, RULE_TEST, STATES, TABLES
from contracts.api.loop import LOOP, LOOP_DEAD_LETTERS, LOOP_GRAPH
from contracts.api.reads import BATCH, KEY, PAGE, VERSIONS
from contracts.api.watch import WATCH_KEY, WATCH_MANY
from contracts.api.windows import COVERAGE, WINDOW_PAGE, WINDOWS

ENDPOINTS = (
    *(STATES, INSTANCES, PAGE, KEY, VERSIONS, WINDOWS, COVERAGE, WINDOW_PAGE, BATCH),
    *(TABLES, PUT_ROW, RULE_TEST, DELETE_ROW),
    *(LOOP, LOOP_GRAPH, LOOP_DEAD_LETTERS),
    *(HEALTHZ, READYZ, METRICS),
)
"""All but the watches, in the order of the OpenAPI document."""

__all__ = [
    "BATCH",
    "COVERAGE",
    "ENDPOINTS",
    "HEALTHZ",
    "INSTANCES",
    "KEY",
    "METRICS",
    "PAGE",
    "READYZ",
    "RULE_TEST",
    "STATES",
    "VERSIONS",
    "WATCH_KEY",
    "WATCH_MANY",
    "WINDOWS",
    "WINDOW_PAGE",
]
