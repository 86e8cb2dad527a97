"""What ends the follower, and with it the service."""

from __future__ import annotations

from services.query.errors import RetryableError


class FollowingFailed(RetryableError):
    """The consumer met an error that it cannot survive."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"The topics cannot be followed ({code}: {detail}): start the service again, it goes on there")
        self.code = code
