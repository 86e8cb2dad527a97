"""What ends the job on purpose. Each message says what to do."""

from contracts.errors import StateloopError


class JobError(StateloopError):
    """The base of the job's own errors."""


class TopicMissing(JobError):
    """A topic of the application is not on the broker."""

    def __init__(self, topic: str, kafka: str) -> None:
        super().__init__(f"topic {topic!r} is not on {kafka}: run `python -m services.topics` once")
        self.topic = topic


class UnknownOption(JobError):
    """One of STATELOOP_KAFKA_OPTIONS that the job cannot hand to Spark's client."""

    def __init__(self, name: str, known: str) -> None:
        super().__init__(f"STATELOOP_KAFKA_OPTIONS: the job cannot use {name} as it is there; it takes {known}")
        self.name = name


class TopicRefused(JobError):
    """The broker does not let the job see a topic."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(
            f"the broker refuses topic {topic!r} ({problem}): let the job's user describe it and its configuration, "
            "and read or write it"
        )
        self.topic = topic


class BrokerUnreachable(JobError):
    """No broker answers."""

    def __init__(self, kafka: str, problem: str) -> None:
        super().__init__(f"no broker answers at {kafka} ({problem}): start it, or set STATELOOP_KAFKA")
        self.kafka = kafka


class PortTaken(JobError):
    """The endpoints cannot be served where the settings say."""

    def __init__(self, host: str, port: int, problem: str) -> None:
        super().__init__(
            f"/healthz and /metrics cannot be served at {host}:{port} ({problem}): "
            "set STATELOOP_HTTP_PORT to a free port, or to 0 for any"
        )
        self.port = port


class SparkGone(JobError):
    """The JVM that runs Spark ended."""

    def __init__(self) -> None:
        super().__init__("the JVM that runs Spark is gone (killed, or out of memory?): start the job again")


class ForeignCheckpoint(JobError):
    """The checkpoint was written by another job. `differences` says in what it differs."""

    def __init__(self, folder: str, differences: list[str]) -> None:
        super().__init__(
            f"the checkpoint {folder} belongs to another job: {'; '.join(differences)}. "
            "Go back to what it was made with, or set STATELOOP_CHECKPOINT to a new folder: "
            "the state is then rebuilt from the events and the feedback that the topics still hold"
        )
        self.differences = differences


class KeepsFailing(JobError):
    """The query failed again and again without any progress between."""

    def __init__(self, failures: int, problem: str) -> None:
        super().__init__(
            f"the query failed {failures} times without progress, last with: {problem}. Mend that and start the job "
            "again: it goes on from its checkpoint"
        )
        self.failures = failures
