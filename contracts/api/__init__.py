"""The HTTP API of the query service: its endpoints, which the service and its client share."""

from contracts.api import admin, loop, reads, windows
from contracts.api.endpoint import Endpoint

ENDPOINTS = tuple(
    found for module in (reads, windows, admin, loop) for found in vars(module).values() if isinstance(found, Endpoint)
)
"""All but the watches, in the order of the OpenAPI document."""
