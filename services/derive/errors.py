"""The errors that stop the deriving worker. It loses nothing: after a restart it continues at its offsets."""

from contracts.errors import PermanentError, StateloopError


class DeriveError(StateloopError):
    """The base of the deriving worker's errors."""


class NothingDerivedError(DeriveError, PermanentError):
    """The application declares no derived state."""

    def __init__(self, application: str) -> None:
        super().__init__(
            f"{application} derives no state: declare one with Application(derived=(Derived(…),)), or leave this out"
        )


class EverythingFailsError(DeriveError, PermanentError):
    """The application's functions raise for every snapshot, so the worker stops."""

    def __init__(self, failures: int, last: BaseException) -> None:
        super().__init__(
            f"nothing could be derived from {failures} snapshots in a row, the last time because of "
            f"{type(last).__name__}: {last}. Fix the function of the derived state, then start the worker again: "
            "it goes on where it was"
        )
        self.failures = failures
