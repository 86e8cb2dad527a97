"""Responses about one key of a state, with its ETag and the role and lag of this instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.http.responses import JSON, SECURITY, Headers, HttpResponse

if TYPE_CHECKING:
    from services.query.cluster import PartitionStatus
    from services.query.lookup.decision import FoundEntry
    from services.query.lookup.state_reader import StateReader


class KeyResponses:
    """Makes the responses of one state."""

    def __init__(self, reader: StateReader, instance: str) -> None:
        self._encoder = reader.encoder
        self._instance = instance
        stale_after_s = round(reader.state.query.stale_after.total_seconds())
        self._cache_control = f"max-age={stale_after_s}" if stale_after_s else "no-cache"

    def headers(self, tag: str, role: str, lag: str) -> Headers:
        """The headers of every answer, also of one without a body."""
        return (
            ("ETag", f'"{tag}"'),
            ("Cache-Control", self._cache_control),
            ("Stateloop-Role", role),
            ("Stateloop-Lag", lag),
            ("Stateloop-Instance", self._instance),
            *SECURITY,
        )

    def found(
        self, key: str, found: FoundEntry, partition_status: PartitionStatus, now: int, value: bytes | None = None
    ) -> HttpResponse:
        """200 with the entry, or 304."""
        headers = self.headers(found.etag, partition_status.role.value, str(partition_status.lag))
        if found.unchanged:
            return HttpResponse(304, headers, b"")
        body = self._encoder.encode(key, found.entry, partition_status, now, value)
        return HttpResponse(200, (("Content-Type", JSON), *headers), body)
