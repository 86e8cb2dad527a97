"""Errors that any part can end with."""

from collections.abc import Iterator, Mapping, Sequence

from contracts.errors import PermanentError, RetryableError

DROPPED = {"_MSG_TIMED_OUT", "_TIMED_OUT", "_PURGE_QUEUE"}
"""The codes of a record that the client dropped."""


class CertificateRefusedError(PermanentError):
    """This client does not trust the certificate of a broker. `problem` names the broker, the reason and the remedy."""


class EverythingFailsError(PermanentError):
    """(Nearly) everything fails, so the worker stops: more dead letters would not help.

    `problem` has the number of failures, and the last one; `remedy` is what to do about them.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}. {remedy}")


class ForeignTopicsError(PermanentError):
    """Output topics of this application belong to another one. `owners` has each topic's application and role."""

    def __init__(self, application: str, owners: Mapping[str, tuple[str, str]]) -> None:
        listed = ", ".join(f"{topic!r} ({role} of {owner!r})" for topic, (owner, role) in sorted(owners.items()))
        super().__init__(
            f"the application {application!r} cannot write to topics of another application: {listed}. Give it topics "
            "of its own with Topics(prefix=…), or, when the other application is stopped for good, run "
            "`stateloop topics` once with STATELOOP_TAKE_OVER=true"
        )
        self.owners = dict(owners)


class LoginRefusedError(PermanentError):
    """A broker answers, and refuses the login. `problem` is the client's last error."""

    def __init__(self, kafka: str, problem: str) -> None:
        super().__init__(f"the broker at {kafka} refuses the login ({problem}): correct STATELOOP_KAFKA_OPTIONS")
        self.kafka = kafka
        self.problem = problem


class NoBrokerError(RetryableError):
    """No broker answers at the address of the settings. `problem` is the client's last error."""

    def __init__(self, kafka: str, problem: str, waited_s: float = 0.0) -> None:
        within = f" within {waited_s:g} s" if waited_s else ""
        super().__init__(
            f"no broker answers at {kafka}{within} ({problem}): start it, or set STATELOOP_KAFKA to the brokers, "
            "and STATELOOP_KAFKA_OPTIONS if they require more than an address"
        )
        self.kafka = kafka
        self.problem = problem


class PortTakenError(PermanentError):
    """The address of the settings cannot be bound. `failure` is what the process cannot do there."""

    def __init__(self, failure: str, host: str, port: int, problem: str) -> None:
        super().__init__(
            f"{failure} at {host}:{port} ({problem}): set STATELOOP_HTTP_PORT to a free port, or to 0 for any"
        )
        self.port = port


class RowNotWrittenError(RetryableError):
    """Kafka did not store a row of a reference table."""

    def __init__(self, topic: str, key: str, problem: str) -> None:
        super().__init__(f"the row {key!r} was not written to {topic!r} ({problem}): write it again")
        self.topic = topic
        self.key = key


class TopicsMissingError(RetryableError):
    """The broker answers, and does not have these topics."""

    def __init__(self, missing: Sequence[str], kafka: str) -> None:
        super().__init__(
            f"The broker at {kafka} does not have the topics {', '.join(missing)}: run `stateloop topics` "
            "with the same STATELOOP_APPLICATION and STATELOOP_KAFKA, or grant this user the right to describe them "
            "(`stateloop acls` prints the commands), then start the worker again",
        )
        self.missing = missing


class OlderCheckpointError(PermanentError):
    """A job of another checkpoint, which is newer, writes the topics of the application. Both are epochs."""

    def __init__(self, application: str, epoch: int, newer: int) -> None:
        super().__init__(
            f"a job of another checkpoint writes the topics of {application!r}: readers prefer its epoch {newer} to "
            f"the epoch {epoch} of this one. Set STATELOOP_CHECKPOINT to that of the other job; to go back to this "
            "one, stop the other job, make a savepoint of this checkpoint, and restore it into an empty folder"
        )
        self.epoch = epoch
        self.newer = newer


class KafkaOperationError(RetryableError):
    """Kafka, or its client, reports an error. `code` is its name."""

    def __init__(self, message: str, code: str, detail: str) -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail

    @property
    def is_of_client(self) -> bool:
        """Whether the client reports it, and not a broker: as that no broker answers."""
        return self.code.startswith("_")


class ConsumerFailedError(KafkaOperationError):
    """The consumer had an error after which it cannot continue."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(
            f"Kafka's consumer failed ({code}: {detail}): start the worker again, it continues at its last commit",
            code,
            detail,
        )


class DeliveryFailedError(KafkaOperationError):
    """A record did not reach its topic, so what it belongs to cannot be finished."""

    def __init__(self, topic: str, code: str, detail: str) -> None:
        super().__init__(
            f"A record could not be written to {topic} ({code}: {detail}): check that the topic exists and can be "
            "written, and start the worker again, it continues at its last commit",
            code,
            detail,
        )
        self.topic = topic

    @property
    def is_dropped(self) -> bool:
        """Whether the client dropped the record, because it was not acknowledged in time: it may be in its topic."""
        return self.code in DROPPED


class KafkaRequestError(KafkaOperationError):
    """Kafka did not carry out a request. `request` is what was requested, as in "commit offsets".

    `topic` is the topic of the request, if it has one.
    """

    def __init__(self, request: str, code: str, detail: str, topic: str = "") -> None:
        super().__init__(
            f"Kafka did not {request} ({code}: {detail}): check STATELOOP_KAFKA, and that this user may do it, and "
            "try again",
            code,
            detail,
        )
        self.request = request
        self.topic = topic


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group: the error of a worker is in the group of all workers."""
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from leaves(member)
    else:
        yield error


class TopicReadError(KafkaOperationError):
    """A topic cannot be read."""

    def __init__(self, topic: str, code: str, detail: str) -> None:
        super().__init__(
            f"{topic} cannot be read ({code}: {detail}): check STATELOOP_KAFKA, and that the topic is there and may be "
            "read, and start again",
            code,
            detail,
        )
        self.topic = topic
