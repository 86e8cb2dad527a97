"""Errors that stop a sink, each with the remedy in its message. Those of stores are in contracts.sinks."""

from __future__ import annotations

from contracts.errors import PermanentError, StateloopError


class SinkError(StateloopError):
    """The base of the errors that stop a sink. Nothing is lost: it continues where it was."""


class UnknownStateError(SinkError, PermanentError):
    """The application has no state of this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no state {name!r}: write STATELOOP_SINK_STATES with names of {', '.join(known)}")
        self.name = name


class WindowsError(SinkError, PermanentError):
    """The state cannot have a row of each window."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the records of the state {name!r} do not name their windows: leave STATELOOP_SINK_WINDOWS unset, or "
            "write newest"
        )
        self.name = name


class UnknownStoreError(SinkError, PermanentError):
    """The URL is not one of a known store."""

    def __init__(self, scheme: str, known: tuple[str, ...]) -> None:
        super().__init__(
            f"no store for URLs that begin with {scheme!r}: write STATELOOP_SINK_URL with {', '.join(known)}, or name "
            "a store of your own in STATELOOP_SINK_STORE as package.module:name"
        )
        self.scheme = scheme


class UrlUnreadableError(SinkError, PermanentError):
    """The file with the URL of the store cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"STATELOOP_SINK_URL names the file {path}, which cannot be read ({problem}): mount it; "
            "the URL of a store of your own begins with something else than file:"
        )
        self.path = path


class ClientMissingError(SinkError, PermanentError):
    """The client of a store is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"the sink needs the package {package}: pip install 'stateloop[{extra}]'")
        self.package = package
