"""The errors of the commands on a checkpoint. Each message has a remedy."""

from collections.abc import Collection

from contracts.errors import PermanentError, RetryableError
from spark_app.errors import JobError

COPY_AGAIN = "copy it again from where it was made, or restore one that `stateloop savepoint list FOLDER` lists"


class NotMergedError(JobError, PermanentError):
    """An operation needs a state that is merged from its deltas, and the application has a processor."""

    def __init__(self, application: str, operation: str, remedy: str) -> None:
        super().__init__(f"{operation} needs a state that is merged, and a processor computes {application}: {remedy}")
        self.application = application


class EmptyCheckpointError(JobError, PermanentError):
    """The checkpoint has no committed batch."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"the checkpoint {folder} has no committed batch: set STATELOOP_CHECKPOINT to that of a job that runs "
            "or ran"
        )
        self.folder = folder


class ArchiveReplacedError(JobError, PermanentError):
    """The folder has the archive of a topic that was deleted and created again."""

    def __init__(self, folder: str, topic: str) -> None:
        super().__init__(
            f"{folder} has the archive of a topic {topic} that was deleted and created again: name another folder"
        )
        self.folder = folder


class ArchiveInUseError(JobError, PermanentError):
    """Another process writes to the archive."""

    def __init__(self, folder: str, owner: str) -> None:
        super().__init__(f"the archive {folder} is in use by {owner}: wait until it ends")
        self.owner = owner


class SnapshotsDeletedError(JobError, PermanentError):
    """The topic has deleted snapshots that no run has archived."""

    def __init__(self, topic: str, counts: dict[int, int]) -> None:
        missing = ", ".join(f"{count:,} of partition {number}" for number, count in sorted(counts.items()))
        super().__init__(
            f"{topic} has deleted records that no run has archived ({missing}): run it with --skip-deleted to archive "
            "those that are left, and more often than the topic deletes"
        )
        self.counts = counts


class FilesDeletedError(JobError, RetryableError):
    """Spark deleted files of each commit before they were copied."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"the job deletes the files of {folder} sooner than they are copied: try again, with the checkpoint and "
            "the copy on file systems that are near, with longer batches, or after the job has stopped"
        )
        self.folder = folder


class UnreadableSavepointError(JobError, PermanentError):
    """The folder holds no complete savepoint that this release reads."""

    def __init__(self, path: str, problem: str, remedy: str = COPY_AGAIN) -> None:
        super().__init__(f"{path} is no complete savepoint that this release reads ({problem}): {remedy}")
        self.problem = problem


class FolderNotEmptyError(JobError, PermanentError):
    """A savepoint's folder has files already."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the folder {path} is not empty: name another one for the savepoint")
        self.path = path


class RestoreRefusedError(JobError, PermanentError):
    """The savepoint does not fit the application, its topics, or the checkpoint. `reasons` lists why."""

    def __init__(self, path: str, reasons: list[str]) -> None:
        super().__init__(
            f"the savepoint {path} cannot be used here: {'; '.join(reasons)}. Use the application and the topics that "
            "it was made with and an empty STATELOOP_CHECKPOINT, or run `stateloop rebuild`. For topics with other "
            "ids, as on another cluster, there is --other-topics"
        )
        self.reasons = reasons


class UnreadableOffsetsError(JobError, PermanentError):
    """The file of start offsets cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} has no start offsets ({problem}): write a JSON object of topics, each an object of partitions "
            "with their offsets, or use --other-topics time"
        )
        self.path = path


class RecordsLostError(JobError, PermanentError):
    """The other topics lack records, or may lack some, that follow a savepoint. `losses` lists them."""

    def __init__(self, path: str, losses: list[str]) -> None:
        super().__init__(
            f"a job that continues from {path} would lose events: {'; '.join(losses)}. Copy these records too, name "
            "other offsets, or accept the loss with --accept-loss"
        )
        self.losses = losses


class NoHistoryError(JobError, PermanentError):
    """There is no file of events at a path."""

    def __init__(self, path: str, suffixes: Collection[str]) -> None:
        super().__init__(f"{path} has no file of events: name a file, or a folder of files {', '.join(suffixes)}")
        self.path = path


class UnorderedHistoryError(JobError, PermanentError):
    """Spark does not return the rows of a file in their order, so they have no number."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Spark does not read {path} in the order of its rows: divide it into smaller files")
        self.path = path


class OtherHistoryError(JobError, PermanentError):
    """A bootstrap of other files was interrupted."""

    def __init__(self, topic: str, done: int, files: int) -> None:
        super().__init__(
            f"a bootstrap of other files into {topic} was interrupted after {done} of {files} files: run it again with "
            "those, or make new topics (Topics(prefix=…))"
        )
        self.topic = topic


class HistoryDeletedError(JobError, PermanentError):
    """The topic has deleted records since a bootstrap, and the state of them is not built."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"{topic} has deleted records since the bootstrap of these files, so a state of them would lack events: "
            "make new topics (Topics(prefix=…)), or run `stateloop rebuild --accept-missing` for the whole windows"
        )
        self.topic = topic


class StateExistsError(JobError, PermanentError):
    """The checkpoint has a state already."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(
            f"the checkpoint {checkpoint} has a state already, and a bootstrap comes before the first start of the "
            "job: set STATELOOP_CHECKPOINT to a new folder"
        )
        self.checkpoint = checkpoint


class NoGenerationError(JobError, PermanentError):
    """There is no earlier generation to go back to."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(
            f"the checkpoint {checkpoint} has no generation to go back to: it was never rebuilt, or the former one is "
            "deleted"
        )
        self.checkpoint = checkpoint


class PartitionsAddedError(JobError, PermanentError):
    """The generation to go back to is of topics with fewer partitions."""

    def __init__(self, generation: str, then: int, now: int) -> None:
        super().__init__(
            f"the generation {generation} is of topics with {then} partitions, and they have {now}: run `stateloop "
            "rebuild` with the former application instead, which builds its state from the topics as they are"
        )
        self.generation = generation


class RestoreInterruptedError(JobError):
    """A job took the checkpoint over while `stateloop savepoint restore` was frozen."""

    def __init__(self, checkpoint: str, owner: str) -> None:
        super().__init__(
            f"{owner} took the checkpoint {checkpoint} over while this command stood still, so the copy is not "
            "complete: stop that job, remove the folder, and restore again"
        )
        self.owner = owner


class SwitchInterruptedError(JobError, RetryableError):
    """Another process took the checkpoint over while `stateloop rebuild` was frozen."""

    def __init__(self, checkpoint: str, owner: str) -> None:
        super().__init__(
            f"{owner} took the checkpoint {checkpoint} over while this command stood still, so it activated nothing: "
            "run `stateloop rebuild` again, and it continues; a `--rollback` may have been done by that process"
        )
        self.owner = owner


class RebuildFailedError(JobError, RetryableError):
    """The query that builds a generation failed."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the build failed: {problem}. Fix that and run `stateloop rebuild` again: it continues")
        self.problem = problem
