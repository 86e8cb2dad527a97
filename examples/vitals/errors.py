"""Errors of the example, each with a remedy in its message."""

from stateloop import PermanentError, RetryableError


class NoRecordingsError(PermanentError):
    """A package with recordings is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"the recordings are in the package {package}: run make install (or pip install '.[vitals]')")
        self.package = package


class NotDeliveredError(RetryableError):
    """The broker did not take a chunk."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(
            f"topic {topic!r} does not take chunks ({problem}): start the broker, and run stateloop topics"
        )
        self.topic = topic
