"""Errors that stop ingest, and with it the service."""

from __future__ import annotations

from contracts.errors import RetryableError
from services.query.errors import QueryServiceError


class IngestionError(QueryServiceError, RetryableError):
    """The consumer reported an error that it cannot recover from."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(
            f"The topics cannot be read ({code}: {detail}): start the service again, it goes on from its store"
        )
        self.code = code
