"""The query parameters of the console's routes."""

from __future__ import annotations

from pydantic import Field

from contracts.api.endpoint import Parameters, Text

LARGEST = 10**15


class ApplicationQuery(Parameters):
    """The application of the suite, also of the graph of enrichments."""

    application: Text | None = Field(
        default=None, min_length=1, description="An application of the suite; without it, the first one"
    )


class LoopQuery(ApplicationQuery):
    """Parameters of a GET of the loop."""

    since: int | None = Field(
        default=None, ge=0, le=LARGEST, description="With the history after this time, in milliseconds since 1970"
    )


class DeadLettersQuery(ApplicationQuery):
    """Parameters of a GET of the dead letters."""

    limit: int = Field(default=50, ge=0, le=200, description="How many of the latest")
