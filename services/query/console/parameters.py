"""The query parameters of the console's routes."""

from __future__ import annotations

from pydantic import Field

from services.query.http.parameters import Parameters

LARGEST = 10**15


class LoopQuery(Parameters):
    """Of the loop."""

    since: int | None = Field(
        default=None, ge=0, le=LARGEST, description="With the history after this time, in milliseconds since 1970"
    )


class DeadLettersQuery(Parameters):
    """Of the dead letters."""

    limit: int = Field(default=50, ge=0, le=200, description="How many of the latest")
