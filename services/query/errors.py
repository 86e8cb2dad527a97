"""Errors that stop the service; their messages name the remedy. Errors of requests are in lookup/problems.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import PermanentError, RetryableError, StateloopError

if TYPE_CHECKING:
    from pathlib import Path


class QueryServiceError(StateloopError):
    """The base. Nothing is lost: after a restart the service continues from its store."""


class ExposedError(QueryServiceError, PermanentError):
    """Without tokens, every client that reaches this address could read all states."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"At {host} all states would be public: set STATELOOP_TOKENS to a file of tokens "
            "(docs/how-to/control-access.md shows one), or STATELOOP_HTTP_HOST=127.0.0.1",
        )
        self.host = host


class TokensUnreadableError(QueryServiceError, PermanentError):
    """The file of tokens is missing or invalid. The message contains no token."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"{path}, the file of tokens (STATELOOP_TOKENS): {problem}. docs/how-to/control-access.md shows one"
        )
        self.path = path


class NoTopicError(QueryServiceError, PermanentError):
    """The topic of a named state does not exist."""

    def __init__(self, topic: str, kafka: str) -> None:
        super().__init__(f"the brokers at {kafka} have no topic {topic!r}: create it with stateloop topics")
        self.topic = topic


class PartitionsChangedError(QueryServiceError, RetryableError):
    """The topic has another number of partitions than when the service was started."""

    def __init__(self, topic: str, before: int, now: int) -> None:
        super().__init__(
            f"topic {topic!r} has {now} partitions, and had {before}: start the service again. A key that was written "
            "before may be in another partition than the one that lookups use, and is reported as never seen until it "
            "is written again: write all keys once more, or create the topic again"
        )
        self.topic = topic
