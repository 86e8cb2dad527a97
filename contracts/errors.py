"""What can go wrong in a declaration, in a record, and in a call. Each error carries its facts and says what to do."""

from datetime import timedelta


class StateloopError(Exception):
    """The base of every error that Stateloop raises on purpose."""


class DeclarationError(StateloopError):
    """An application is declared wrongly. `where` is the class, field or function; `write` is what to write instead."""

    def __init__(self, where: str, problem: str, write: str) -> None:
        super().__init__(f"{where}: {problem}. {write}")
        self.where = where
        self.problem = problem
        self.write = write


class CallError(StateloopError):
    """A call to an external API that gave no result."""


class Absent(CallError):
    """The API answered that it knows nothing of what was asked (404, 410): an answer, not a failure."""


class RetryableFailure(CallError):
    """A call that may succeed later. `retry_after` is what the API asked for, if it did."""

    def __init__(self, reason: str, retry_after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


class PermanentFailure(CallError):
    """A call that will not succeed however often it is tried."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
