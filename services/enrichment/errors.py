"""Errors that stop a worker, each with the remedy in its message. Errors of calls are in contracts.errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import PermanentError, RetryableError, StateloopError

if TYPE_CHECKING:
    from collections.abc import Sequence


class WorkerError(StateloopError):
    """The base of the errors that stop a worker. Nothing is lost: unfinished requests are repeated after a restart."""


class ApiUnknownError(WorkerError, PermanentError):
    """The application calls APIs without an address in the settings."""

    def __init__(self, missing: tuple[str, ...]) -> None:
        example = ", ".join(f'"{name}": "https://…"' for name in missing)
        super().__init__(
            f"STATELOOP_APIS has no address for {', '.join(missing)}, which the application calls: "
            f"write STATELOOP_APIS='{{{example}}}'",
        )
        self.missing = missing


class TracingMissingError(WorkerError, PermanentError):
    """Tracing is on, and OpenTelemetry is not installed."""

    def __init__(self) -> None:
        super().__init__("STATELOOP_TRACING needs OpenTelemetry: pip install 'stateloop[tracing]', or leave it unset")


class HeaderUnreadableError(WorkerError, PermanentError):
    """A secret header of an API is missing or cannot be sent. The message does not contain its value."""

    def __init__(self, name: str, where: str, problem: str) -> None:
        super().__init__(f"The header {name!r} ({where}): {problem}: write one line of text, or file:/its/path")
        self.name = name


class EverythingFailsError(WorkerError, PermanentError):
    """All requests of an API fail, or no snapshot can be decoded. More dead letters would not help."""

    def __init__(self, what: str, failed: int, of: int, last: str, remedy: str) -> None:
        super().__init__(
            f"{failed} of the last {of} {what} failed, the last one with: {last}. The worker stops, because every "
            f"further record would become a dead letter. {remedy}, then start it again: it continues at its last "
            "commit, and `stateloop redrive` brings the dead letters back",
        )
        self.failed = failed
        self.of = of


class TopicsMissingError(WorkerError, RetryableError):
    """The broker answers, and does not have these topics."""

    def __init__(self, missing: Sequence[str], kafka: str) -> None:
        super().__init__(
            f"The broker at {kafka} does not have the topics {', '.join(missing)}: run `stateloop topics` "
            "with the same STATELOOP_APPLICATION and STATELOOP_KAFKA, then start the worker again",
        )
        self.missing = missing


class ConsumerFailedError(WorkerError, RetryableError):
    """The consumer had an error after which it cannot continue."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(
            f"Kafka's consumer failed ({code}: {detail}): start the worker again, it continues at its last commit"
        )
        self.code = code


class DeliveryFailedError(WorkerError, RetryableError):
    """A record did not reach its topic, so its request cannot be finished."""

    def __init__(self, topic: str, code: str, detail: str) -> None:
        super().__init__(
            f"A record could not be written to {topic} ({code}: {detail}): check that the topic exists and can be "
            "written, and start the worker again, it continues at its last commit",
        )
        self.topic = topic
        self.code = code
