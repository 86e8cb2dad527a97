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


class LostGenerationError(JobError, PermanentError):
    """A generation of the checkpoint was activated, and has no stateloop.json."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"{folder} is the active generation of the checkpoint, and has no stateloop.json, as when it is deleted or "
            "was not copied: restore it from a backup, run `stateloop rebuild`, or restore a savepoint into an empty "
            "STATELOOP_CHECKPOINT"
        )
        self.folder = folder


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


class HistoryWriteError(JobError, RetryableError):
    """An event of the past did not reach its topic."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(
            f"the events cannot be written to {topic} ({problem}): fix that and run the same command again: it "
            "continues"
        )
        self.topic = topic


class ActivationConflictError(JobError, RetryableError):
    """Another process activated a generation at the same moment."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(f"another process activated a generation of {checkpoint} at the same time: try again")
        self.checkpoint = checkpoint


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
    """A file of the state does not have its checksum."""

    def __init__(self, batch: int) -> None:
        super().__init__(
            f"a file of the state of batch {batch} is damaged: the next start continues before that batch. If all "
            "starts fail, run `stateloop rebuild`, or restore a savepoint"
        )
        self.batch = batch


class UnreadableStateError(JobError, PermanentError):
    """The state is damaged, and so is each earlier one that the checkpoint still has."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"the state cannot be read: in the checkpoint {folder}, files are damaged that each of its batches needs. "
            "Run `stateloop rebuild`, or restore a savepoint"
        )
        self.folder = folder


class WholeStateDamagedError(JobError, RetryableError):
    """The zip file of a whole state is damaged."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the file {path} of the state is damaged: try again when the job, which may run meanwhile, has committed "
            "some more batches. If it does not start, run `stateloop rebuild`, or restore a savepoint"
        )
        self.path = path


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
