"""What can end a worker, each with the way out in its message. Errors of calls are in contracts.errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import StateloopError

if TYPE_CHECKING:
    from collections.abc import Sequence


class WorkerError(StateloopError):
    """The base of what ends a worker. Nothing is lost: work that is not finished is done again after a restart."""


class RetryableError(WorkerError):
    """A restart may cure it."""


class PermanentError(WorkerError):
    """Nothing changes until somebody does what the message says."""


class ApiUnknownError(PermanentError):
    """The application calls APIs whose addresses are not set."""

    def __init__(self, missing: tuple[str, ...]) -> None:
        example = ", ".join(f'"{name}": "https://…"' for name in missing)
        super().__init__(
            f"The application calls {', '.join(missing)}, and STATELOOP_APIS does not say where that is: "
            f"write STATELOOP_APIS='{{{example}}}'",
        )
        self.missing = missing


class TracingMissingError(PermanentError):
    """Traces are asked for, and OpenTelemetry is not installed."""

    def __init__(self) -> None:
        super().__init__("STATELOOP_TRACING needs OpenTelemetry: pip install 'stateloop[tracing]', or leave it unset")


class PortTakenError(PermanentError):
    """The endpoints cannot be served where the settings say."""

    def __init__(self, host: str, port: int, detail: str) -> None:
        super().__init__(
            f"/healthz and /metrics cannot be served at {host}:{port} ({detail}): "
            "set STATELOOP_HTTP_PORT to a free port, or to 0 for any",
        )
        self.port = port


class HeaderUnreadableError(PermanentError):
    """A secret header of an API is not there, or cannot be sent. The message does not tell its value."""

    def __init__(self, name: str, where: str, problem: str) -> None:
        super().__init__(f"The header {name!r} ({where}): {problem}: write one line of text, or file:/its/path")
        self.name = name


class EverythingFailsError(PermanentError):
    """All that is asked of an API fails, or nothing that is read can be decoded: more dead letters help nobody."""

    def __init__(self, what: str, failed: int, of: int, last: str, look: str) -> None:
        super().__init__(
            f"{failed} of the last {of} {what} failed, the last one so: {last}. The worker stops, rather than make "
            f"dead letters of all that comes. {look}, then start it again: it goes on where it was, and "
            "`stateloop redrive` brings the dead letters back",
        )
        self.failed = failed
        self.of = of


class TopicsMissingError(RetryableError):
    """The broker answers, and does not have these topics."""

    def __init__(self, missing: Sequence[str], kafka: str) -> None:
        super().__init__(
            f"The broker at {kafka} does not have the topics {', '.join(missing)}: run `stateloop topics` "
            "with the same STATELOOP_APPLICATION and STATELOOP_KAFKA, then start the worker again",
        )
        self.missing = missing


class ConsumerFailedError(RetryableError):
    """The consumer met an error that it cannot survive."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"Kafka's consumer ended ({code}: {detail}): start the worker again, it goes on where it was")
        self.code = code


class DeliveryFailedError(RetryableError):
    """A record did not reach its topic, so the work behind it cannot be called finished."""

    def __init__(self, topic: str, code: str, detail: str) -> None:
        super().__init__(
            f"A record could not be written to {topic} ({code}: {detail}): check that the topic is there and may be "
            "written, and start the worker again, it goes on where it was",
        )
        self.topic = topic
        self.code = code
