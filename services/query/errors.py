"""What can end the service, each with the way out in its message. What a client is told is in api/problems.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import StateloopError

if TYPE_CHECKING:
    from pathlib import Path


class QueryError(StateloopError):
    """The base of what ends the service. Nothing is lost: after a restart it goes on where its store is."""


class RetryableError(QueryError):
    """A restart may cure it."""


class PermanentError(QueryError):
    """Nothing changes until somebody does what the message says."""


class PortTakenError(PermanentError):
    """Nobody can be answered where the settings say."""

    def __init__(self, host: str, port: int, detail: str) -> None:
        super().__init__(
            f"States cannot be asked at {host}:{port} ({detail}): "
            "set STATELOOP_HTTP_PORT to a free port, or to 0 for any",
        )
        self.port = port


class ExposedError(PermanentError):
    """Anybody who reaches this address would read all states."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"At {host} all states would be public: set STATELOOP_TOKENS to a file of tokens "
            "(docs/how-to/control-access.md shows one), or STATELOOP_HTTP_HOST=127.0.0.1",
        )
        self.host = host


class TokensUnreadableError(PermanentError):
    """The file of tokens is not there, or says something else. The message tells none of them."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"{path}, the file of tokens (STATELOOP_TOKENS): {problem}. docs/how-to/control-access.md shows one"
        )
        self.path = path


class NoBrokerError(RetryableError):
    """No broker answers."""

    def __init__(self, kafka: str, problem: str) -> None:
        super().__init__(
            f"no broker answers at {kafka} ({problem}): start it, or set STATELOOP_KAFKA, "
            "and STATELOOP_KAFKA_OPTIONS if it wants more than an address"
        )
        self.kafka = kafka


class NoTopicError(PermanentError):
    """The topic of a named state is not there."""

    def __init__(self, topic: str, kafka: str) -> None:
        super().__init__(f"the brokers at {kafka} have no topic {topic!r}: make it with stateloop topics")
        self.topic = topic


class PartitionsChangedError(RetryableError):
    """Keys are spread over another number of partitions than when the service was started."""

    def __init__(self, topic: str, before: int, now: int) -> None:
        super().__init__(
            f"topic {topic!r} has {now} partitions, and had {before}: start the service again. A key that was written "
            "before may be in another partition than it is looked for now, and be told as never seen until it is "
            "written again: write all keys once more, or make the topic anew"
        )
        self.topic = topic
