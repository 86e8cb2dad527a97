"""What a request for the console's JSON may say beside its path."""

from __future__ import annotations

from pydantic import Field

from services.query.http.parameters import Parameters

LARGEST = 10**15


class OfLoop(Parameters):
    """Of the loop."""

    since: int | None = Field(
        default=None, ge=0, le=LARGEST, description="With the course after this time, in milliseconds since 1970"
    )


class OfLetters(Parameters):
    """Of the dead letters."""

    limit: int = Field(default=50, ge=0, le=200, description="How many of the latest")
