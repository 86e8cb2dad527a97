"""The settings of a sink."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import Field, SecretStr

from contracts.records.named_states import named
from contracts.settings import FILE, Duration, WorkerLimitSettings, read_secret
from contracts.sinks import Target, Windows
from services.sink.errors import UnknownStateError, UrlUnreadableError, WindowsError

if TYPE_CHECKING:
    from contracts import Application, Suite
    from contracts.model.named_state import NamedState


class SinkSettings(WorkerLimitSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_SINK_URL, and so on."""

    sink_url: SecretStr
    """The store: `redis://user:password@host:6379/0`, `rediss://` with TLS, or
    `postgresql://user:password@host:5432/database`, each with the options of its client. A value `file:/path` is read
    from that file, so the URL of a store of your own needs another beginning."""
    sink_store: str | None = None
    """A store of your own, as package.module:name: a `stateloop.sinks.StoreFactory`, which gets the URL."""
    sink_states: tuple[str, ...] = Field(default=(), examples=[["flights", "aircraft"]])
    """The names of the states that it writes; unset, all states of the application."""
    sink_prefix: str = ""
    """The beginning of the name of each table, or of each key; the name of the state follows."""
    sink_windows: Windows | None = None
    """`all`: a row of each window of a key. `newest`: a row of each key, of its newest window. Unset, `all` for states
    with windows of the clock, and `newest` for the others."""
    sink_retention: Duration | None = None
    """The retention of a row after its window is closed for good. Unset, as long as the query service answers a closed
    window, and not at all for states without windows of the clock. Rows of a replay, and of states without lifetime,
    are kept until a record removes them."""
    sink_batch: int = Field(default=1000, ge=1)
    """The maximum number of records per write."""
    sink_timeout: Duration = timedelta(seconds=30)
    """The timeout of a call of the store."""

    def url(self) -> str:
        """Return the URL of the store, which may contain a password. Raises UrlUnreadableError."""
        url = self.sink_url.get_secret_value()
        try:
            return read_secret(url)
        except (OSError, UnicodeDecodeError) as error:
            raise UrlUnreadableError(url.removeprefix(FILE), type(error).__name__) from error

    def states(self, suite: Suite) -> dict[str, tuple[Application, NamedState]]:
        """Return the states to write, with their applications. Raises UnknownStateError."""
        known = {
            name: (application, state)
            for application in suite.applications
            for name, state in named(application).items()
        }
        for name in self.sink_states:
            if name not in known:
                raise UnknownStateError(name, tuple(known))
        return {name: known[name] for name in self.sink_states or known}

    def target(self, state: NamedState) -> Target:
        """Return where a state goes in the store. Raises WindowsError."""
        windows = self.sink_windows or (Windows.NEWEST if state.window is None else Windows.ALL)
        names_windows = state.window_start is not None and (state.windowed or state.key is not None)
        if windows is Windows.ALL and not names_windows:
            raise WindowsError(state.name)
        return Target(f"{self.sink_prefix}{state.name}", state.topic, windows)

    def retention(self, state: NamedState) -> timedelta:
        """Return how long a row of a state is kept after its window is closed for good."""
        if self.sink_retention is not None:
            return self.sink_retention
        return timedelta(0) if state.window is None else state.query.closed_windows
