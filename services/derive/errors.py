"""The errors that stop the deriving worker. It loses nothing: after a restart it continues at its offsets."""

from contracts.errors import PermanentError, RetryableError, StateloopError


class DeriveError(StateloopError):
    """The base of the deriving worker's errors."""


class NothingDerivedError(DeriveError, PermanentError):
    """The application declares no derived state."""

    def __init__(self, application: str) -> None:
        super().__init__(
            f"{application} derives no state: declare one with Application(derived=(Derived(…),)), or leave this out"
        )


class NoTopicError(DeriveError, PermanentError):
    """The topic of a derived state does not exist."""

    def __init__(self, topic: str, kafka: str) -> None:
        super().__init__(f"the brokers at {kafka} have no topic {topic!r}: make it with stateloop topics")
        self.topic = topic


class UnequalPartitionsError(DeriveError, PermanentError):
    """A topic of alerts has another number of partitions than that of the snapshots."""

    def __init__(self, topic: str, found: int, wanted: int) -> None:
        super().__init__(
            f"the topic {topic!r} has {found} partitions, and the snapshots have {wanted}: if partitions are being "
            "added, complete that with stateloop rebuild; else delete it, and run stateloop topics"
        )
        self.topic = topic


class KafkaFailedError(DeriveError, RetryableError):
    """Kafka did not read, write or commit. `code` is the name of the error."""

    def __init__(self, what: str, code: str, detail: str) -> None:
        super().__init__(f"{what} ({code}: {detail}): start the worker again, it goes on where it was")
        self.code = code


class StatesNotStoredError(DeriveError, RetryableError):
    """The newest snapshots cannot be stored on disk."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"the newest snapshots cannot be stored in {folder} ({problem}): give it space, or set TMPDIR to another "
            "folder, then start the worker again"
        )
        self.folder = folder


class EverythingFailsError(DeriveError, PermanentError):
    """The application's functions raise for every snapshot, so the worker stops."""

    def __init__(self, failures: int, last: BaseException) -> None:
        super().__init__(
            f"nothing could be derived from {failures} snapshots in a row, the last time because of "
            f"{type(last).__name__}: {last}. Fix the function of the derived state, then start the worker again: "
            "it goes on where it was"
        )
        self.failures = failures
