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
