"""The errors of the evaluation of alerts. They stop the worker, which loses nothing."""

from contracts.errors import PermanentError, RetryableError, StateloopError


class AlertsError(StateloopError):
    """The base of these errors."""


class UnequalPartitionsError(AlertsError, PermanentError):
    """A topic of alerts has another number of partitions than that of the snapshots."""

    def __init__(self, topic: str, found: int, wanted: int) -> None:
        super().__init__(
            f"the topic {topic!r} has {found} partitions, and the snapshots have {wanted}: if partitions are being "
            "added, complete that with stateloop rebuild; else delete it, and run stateloop topics"
        )
        self.topic = topic


class StatesNotStoredError(AlertsError, RetryableError):
    """The newest snapshots cannot be stored on disk."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"the newest snapshots cannot be stored in {folder} ({problem}): give it space, or set TMPDIR to another "
            "folder, then start the worker again"
        )
        self.folder = folder
