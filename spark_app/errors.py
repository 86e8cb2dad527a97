"""The errors that stop the job. Each message has a remedy."""

from collections.abc import Collection, Mapping

from contracts.errors import PermanentError, RetryableError, StateloopError


class JobError(StateloopError):
    """The base of the job's errors."""


class TopicMissingError(JobError, PermanentError):
    """A topic of the application is not on the broker."""

    def __init__(self, topic: str, kafka: str) -> None:
        super().__init__(f"topic {topic!r} is not on {kafka}: run `stateloop topics` once")
        self.topic = topic


class PartitionCountError(JobError, PermanentError):
    """The topics of the application have different numbers of partitions. `found` is by topic."""

    def __init__(self, found: Mapping[str, int]) -> None:
        listed = ", ".join(f"{topic} has {count}" for topic, count in found.items())
        super().__init__(
            f"the topics must have the same number of partitions, because a device has the same partition in all of "
            f"them, and {listed}: if partitions were being added, run `stateloop rebuild --partitions "
            f"{max(found.values())}` again, else delete those that differ and run `stateloop topics`"
        )
        self.found = found


class TopicReplacedError(JobError, RetryableError):
    """A topic of raw records was deleted and created again while the job ran."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic!r} was deleted and created again: its records are read from the first one")
        self.topic = topic


class RawWriteError(JobError, RetryableError):
    """The broker did not take a decoded event."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(f"topic {topic!r} does not take decoded events ({problem}): fix that; the job tries again")
        self.topic = topic


class UnsupportedOptionError(JobError, PermanentError):
    """STATELOOP_KAFKA_OPTIONS has an option that the job cannot pass to Spark's client."""

    def __init__(self, name: str, problem: str = "Java's client has no such option: leave it out") -> None:
        super().__init__(f"STATELOOP_KAFKA_OPTIONS: the job cannot use {name} as it is there: {problem}")
        self.name = name


class MissingPackageError(JobError, PermanentError):
    """A package is not installed that an application needs and the core does not. `extra` has it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"the application needs the package {package}: pip install 'stateloop[{extra}]'")
        self.package = package
        self.extra = extra


class NotMergedError(JobError, PermanentError):
    """An operation needs a state that is merged from its deltas, and the application has a processor."""

    def __init__(self, application: str, operation: str, remedy: str) -> None:
        super().__init__(f"{operation} needs a state that is merged, and a processor computes {application}: {remedy}")
        self.application = application


class TopicAccessError(JobError, PermanentError):
    """The broker does not let the job see a topic."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(
            f"the broker refuses topic {topic!r} ({problem}): let the job's user describe it and its configuration, "
            "and read or write it"
        )
        self.topic = topic


class BrokerUnreachableError(JobError, RetryableError):
    """No broker answers."""

    def __init__(self, kafka: str, problem: str) -> None:
        super().__init__(f"no broker answers at {kafka} ({problem}): start it, or set STATELOOP_KAFKA")
        self.kafka = kafka


class SparkExitedError(JobError, RetryableError):
    """The JVM that runs Spark ended."""

    def __init__(self) -> None:
        super().__init__("the JVM that runs Spark is gone (killed, or out of memory?): start the job again")


class ForeignCheckpointError(JobError, PermanentError):
    """The checkpoint was written by another job. `differences` lists how it differs."""

    def __init__(self, folder: str, differences: list[str]) -> None:
        super().__init__(
            f"the checkpoint {folder} belongs to another job: {'; '.join(differences)}. "
            "Go back to what it was made with, or run `stateloop rebuild`, which builds the state anew from the events "
            "and the feedback that the topics still hold"
        )
        self.differences = differences


class PartialCheckpointError(JobError, PermanentError):
    """The checkpoint has files of a query, and no stateloop.json. `found` lists these files."""

    def __init__(self, folder: str, found: Collection[str]) -> None:
        super().__init__(
            f"the checkpoint {folder} has no stateloop.json, and has {', '.join(sorted(found))}, as when it is deleted "
            "while a job runs: restore it from a backup, or stop the job, delete the folder and start the job again: "
            "the state is then rebuilt from the events and the feedback that the topics still hold"
        )
        self.found = found


class UnreadableCheckpointError(JobError, PermanentError):
    """The checkpoint's stateloop.json is damaged, or another release wrote it."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"this release cannot read stateloop.json of the checkpoint {folder}: {problem}. Start the release that "
            "wrote it, restore the file from a backup, or set STATELOOP_CHECKPOINT to a new folder"
        )
        self.problem = problem


class ReplacedCheckpointError(JobError, RetryableError):
    """The checkpoint was deleted or replaced while the job ran."""

    def __init__(self, folder: str, epoch: int, found: int | None) -> None:
        now = "is gone" if found is None else f"has the epoch {found}"
        super().__init__(
            f"the checkpoint {folder} of the epoch {epoch} was replaced while the job ran: its stateloop.json {now}. "
            "Start the job again"
        )
        self.epoch = epoch
        self.found = found


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

    def __init__(self, path: str, problem: str, remedy: str = "`stateloop savepoint list FOLDER` lists some") -> None:
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


class HistoryWriteError(JobError, RetryableError):
    """An event of the past did not reach its topic."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(
            f"the events cannot be written to {topic} ({problem}): fix that and run the same command again: it "
            "continues"
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
        super().__init__(f"the checkpoint {checkpoint} was never rebuilt: there is no generation to go back to")
        self.checkpoint = checkpoint


class PartitionsAddedError(JobError, PermanentError):
    """The generation to go back to is of topics with fewer partitions."""

    def __init__(self, generation: str, then: int, now: int) -> None:
        super().__init__(
            f"the generation {generation} is of topics with {then} partitions, and they have {now}: run `stateloop "
            "rebuild` with the former application instead, which builds its state from the topics as they are"
        )
        self.generation = generation


class ActivationConflictError(JobError, RetryableError):
    """Another process activated a generation at the same moment."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(f"another process activated a generation of {checkpoint} at the same time: try again")
        self.checkpoint = checkpoint


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


class CheckpointUnreachableError(JobError, RetryableError):
    """The checkpoint's file system refuses an operation."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"the checkpoint {folder} cannot be used ({problem}): let the job's user read and write it, or set "
            "STATELOOP_CHECKPOINT to another folder"
        )
        self.folder = folder


class CheckpointInUseError(JobError, PermanentError):
    """Another job runs on the checkpoint."""

    def __init__(self, folder: str, owner: str) -> None:
        super().__init__(
            f"the checkpoint {folder} is in use by {owner}: stop that job first, or set STATELOOP_CHECKPOINT "
            "to another folder"
        )
        self.owner = owner


class ConcurrentCommitError(JobError, PermanentError):
    """Another job, without a lease, committed a batch to the checkpoint."""

    def __init__(self) -> None:
        super().__init__(
            "another job committed a batch to the same checkpoint without a lease (one of an older release?): "
            "stop that job, then start this one again"
        )


class StateDamagedError(JobError, RetryableError):
    """A changelog of the state does not have its checksum."""

    def __init__(self, batch: int) -> None:
        super().__init__(
            f"a changelog of the state of batch {batch} is damaged: the next start continues before that batch. If all "
            "starts fail, run `stateloop rebuild`, or restore a savepoint"
        )
        self.batch = batch


class LeaseLostError(JobError, RetryableError):
    """Another job took the checkpoint over while this one was frozen or could not reach it."""

    def __init__(self, folder: str, owner: str) -> None:
        super().__init__(
            f"this job lost the lease of the checkpoint {folder} to {owner}, because it did not renew it in time, or "
            "`stateloop rebuild` took it: start it again when that process has ended"
        )
        self.owner = owner


class ClockSetBackError(JobError, RetryableError):
    """The system clock was set back, by which batches end and begin."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the system clock was set back by {seconds:.0f} s, and batches end and begin by it: the query starts again"
        )


class QueryFailsError(JobError, RetryableError):
    """The query failed again and again without any progress between."""

    def __init__(self, failures: int, problem: str) -> None:
        super().__init__(
            f"the query failed {failures} times without progress, last with: {problem}. Fix that and start the job "
            "again: it goes on from its checkpoint"
        )
        self.failures = failures
