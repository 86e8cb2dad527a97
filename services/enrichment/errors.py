"""Errors that stop a worker, each with the remedy in its message. Errors of calls are in contracts.errors."""

from __future__ import annotations

from contracts.errors import PermanentError, StateloopError


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


class WebhookSecretError(WorkerError, PermanentError):
    """The secret of a webhook cannot be used. The message does not contain it."""

    def __init__(self, api: str, problem: str) -> None:
        super().__init__(
            f"The secret of {api} in STATELOOP_WEBHOOK_SECRETS: {problem}: write whsec_ and base64, or file:/its/path "
            '(printf "whsec_%s" "$(openssl rand -base64 32)" makes one)'
        )
        self.api = api
