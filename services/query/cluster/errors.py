"""What ends an instance that cannot be one of the cluster, with the way out in its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.errors import PermanentError, RetryableError

if TYPE_CHECKING:
    from pathlib import Path


class FolderTakenError(PermanentError):
    """Another process is the instance of this folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"Another instance works in {folder}: stop it, or give this one a folder of its own by STATELOOP_QUERY_DATA"
        )
        self.folder = folder


class NamesakeError(PermanentError):
    """Another process has the same name in the group, so that this one was put out of it."""

    def __init__(self, instance: str, detail: str) -> None:
        super().__init__(
            f"Another instance calls itself {instance!r} too ({detail}): give each a name of its own by "
            "STATELOOP_INSTANCE"
        )
        self.instance = instance


class ClientFailedError(RetryableError):
    """A client of the brokers cannot go on."""

    def __init__(self, client: str, code: str, detail: str) -> None:
        super().__init__(f"The client of the {client} has failed ({code}: {detail}): see what the brokers allow it")
        self.code = code
