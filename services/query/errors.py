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
        super().__init__(
            f"the brokers at {kafka} have no topic {topic!r}: create it with stateloop topics, or grant this user the "
            "right to describe it (`stateloop acls query` prints the commands)"
        )
        self.topic = topic


class PartitionsChangedError(QueryServiceError, RetryableError):
    """The topic has another number of partitions than when the service was started."""

    def __init__(self, topic: str, before: int, now: int) -> None:
        super().__init__(
            f"topic {topic!r} has {now} partitions, and had {before}: start the service again. Unless `stateloop "
            "rebuild` has added them, a key that was written before may be in another partition than the one that "
            "lookups use, and is reported as never seen: write all keys once more, or create the topic again"
        )
        self.topic = topic


class FolderTakenError(QueryServiceError, PermanentError):
    """Another process uses the instance's folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"Another instance works in {folder}: stop it, or give this one a folder of its own by STATELOOP_QUERY_DATA"
        )
        self.folder = folder


class DuplicateAddressError(QueryServiceError, PermanentError):
    """Another live instance announces the same address, so requests for it would reach only one of the two."""

    def __init__(self, url: str, other: str) -> None:
        super().__init__(
            f"The live instance {other!r} announces the address {url} too: give each instance an address of its own. "
            "It is STATELOOP_URL, which is the address of any instance for clients; unset, the one that it listens at"
        )
        self.url = url
        self.other = other


class DuplicateInstanceError(QueryServiceError, PermanentError):
    """Another process has the same instance name, and has fenced this one out of the consumer group."""

    def __init__(self, instance: str, detail: str) -> None:
        super().__init__(
            f"Another instance has the name {instance!r} too ({detail}): give each a name of its own by "
            "STATELOOP_INSTANCE"
        )
        self.instance = instance


class KafkaClientError(QueryServiceError, RetryableError):
    """A Kafka client reported a fatal error."""

    def __init__(self, client: str, code: str, detail: str) -> None:
        super().__init__(f"The client of the {client} has failed ({code}: {detail}): check what the brokers permit it")
        self.code = code


class IngestionError(QueryServiceError, RetryableError):
    """The consumer reported an error that it cannot recover from."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(
            f"The topics cannot be read ({code}: {detail}): start the service again, it goes on from its store"
        )
        self.code = code
