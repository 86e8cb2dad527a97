"""Errors of declarations, settings, topics and calls. Each has its facts as attributes and names a remedy."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class StateloopError(Exception):
    """The base of every error that Stateloop raises on purpose."""


class RetryableError(StateloopError):
    """The same operation may succeed later."""


class PermanentError(StateloopError):
    """The same operation fails until an operator applies the remedy in the message."""


AUTHOR_ERRORS: tuple[type[BaseException], ...] = (Exception, SystemExit)
"""The errors of the application's functions: sys.exit in one of them must not end the process that calls it."""


def writable(text: str) -> str:
    """Return a text as JSON can hold it: each half of a surrogate pair is replaced by a question mark."""
    return text.encode(errors="replace").decode()


def message_of(error: BaseException) -> str:
    """Return the message of any error, as JSON can hold it; empty if its own `__str__` raises."""
    try:
        return writable(str(error))
    except AUTHOR_ERRORS:
        return ""


def described(error: BaseException) -> str:
    """Return the type and the message of any error of the application's functions: the detail of a dead letter."""
    return ": ".join(filter(None, (type(error).__name__, message_of(error))))


def problem_of(problem: "ErrorDetails", whole: str = "") -> str:
    """Return the message of a problem that pydantic found, after the path in the value, or the name of the `whole`."""
    where = ".".join(map(str, problem["loc"])) or whole
    return f"{where}: {problem['msg']}" if where else problem["msg"]


class DeclarationError(PermanentError):
    """An application is declared wrongly. `where` is the class, field or function; `write` is what to write instead."""

    def __init__(self, where: str, problem: str, write: str) -> None:
        super().__init__(f"{where}: {problem}. {write}")
        self.where = where
        self.problem = problem
        self.write = write


class InvalidSettingsError(PermanentError):
    """Settings are missing, wrong or unknown. `problems` has the variable and the problem of each."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        listed = "; ".join(f"{variable}: {problem}" for variable, problem in problems)
        super().__init__(f"{listed} (correct {'them' if len(problems) > 1 else 'it'} in the environment)")
        self.problems = problems


SHARED = "If other applications use it, declare Topics(replay=…) and Application(raw=…) as they do"


class TopicConfigError(PermanentError):
    """A topic on the broker has other settings than the catalogue requires: `wrong` has those values."""

    def __init__(self, topic: str, actual: Mapping[str, str], wrong: Mapping[str, str], kafka: str) -> None:
        differences = " and ".join(f"{name}={actual.get(name)}, not {value}" for name, value in wrong.items())
        values = ",".join(f"{name}=[{value}]" if "," in value else f"{name}={value}" for name, value in wrong.items())
        super().__init__(
            f"topic {topic!r} has {differences}: run kafka-configs --bootstrap-server {kafka} --alter "
            f"--entity-type topics --entity-name {topic} --add-config '{values}' (the records in it stay as they are), "
            f"or delete it if its records are of no use. {SHARED if 'message.timestamp.type' in wrong else ''}".rstrip()
        )
        self.topic = topic
        self.wrong = wrong


class CallError(StateloopError):
    """A call to an external API that gave no result."""

    calls = 0
    """The number of calls of the API, where it is known."""


class AbsentError(CallError):
    """The API reported that the requested thing does not exist (404, 410): an answer, not a failure."""


class RetryableCallError(CallError, RetryableError):
    """A call that may succeed later. `retry_after` is the wait that the API requests, `response` the answer's start."""

    def __init__(self, reason: str, retry_after: timedelta | None = None, *, response: str | None = None) -> None:
        super().__init__(reason)
        self.reason = writable(reason)
        self.retry_after = retry_after
        self.response = response and writable(response)


class PermanentCallError(CallError, PermanentError):
    """A call that no retry would make succeed. `response` is the start of the API's answer."""

    def __init__(self, reason: str, *, response: str | None = None) -> None:
        super().__init__(reason)
        self.reason = writable(reason)
        self.response = response and writable(response)
