"""Errors that keep an instance out of the cluster; their messages name the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import PermanentError, RetryableError
from services.query.errors import QueryServiceError

if TYPE_CHECKING:
    from pathlib import Path


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
