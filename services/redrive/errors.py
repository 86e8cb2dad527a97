"""What can end a redrive, each with the way out in its message."""

from __future__ import annotations

from contracts.errors import RetryableError, StateloopError


class RedriveError(StateloopError):
    """The base. What was brought back before stays so, and may be brought back again."""


class ReadError(RedriveError, RetryableError):
    """Kafka does not give what is there."""

    def __init__(self, topic: str, code: str, detail: str) -> None:
        super().__init__(
            f"{topic} cannot be read ({code}: {detail}): check STATELOOP_KAFKA, and that the topic is there and may be "
            "read, and start again",
        )
        self.topic = topic
        self.code = code


class WriteError(RedriveError, RetryableError):
    """A record did not reach its topic."""

    def __init__(self, topic: str, code: str, detail: str) -> None:
        super().__init__(
            f"a record could not be written to {topic} ({code}: {detail}): check that it may be, and start again",
        )
        self.topic = topic
        self.code = code
