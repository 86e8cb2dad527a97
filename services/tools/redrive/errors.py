"""The errors of a redrive, each with a remedy in its message."""

from __future__ import annotations

from contracts.errors import RetryableError, StateloopError


class RedriveError(StateloopError):
    """The base of the redrive's errors. Records that were sent before it stay sent, and may be sent again."""


class WriteError(RedriveError, RetryableError):
    """A record did not reach its topic."""

    def __init__(self, topic: str, code: str, detail: str) -> None:
        super().__init__(
            f"a record could not be written to {topic} ({code}: {detail}): check that it may be, and start again",
        )
        self.topic = topic
        self.code = code
