"""Readiness conditions: the next process starts when the condition of the former one is true."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from typing import Protocol

from typing_extensions import override

from services.runtime.kafka.broker_check import answers

ANSWER_S = 1.0


class Started(Protocol):
    """A running process, as its readiness condition sees it."""

    def output(self) -> str:
        """Return its output since its start."""
        ...

    def exit_code(self) -> int | None:
        """Return its exit code; None while it runs."""
        ...


class Readiness(Protocol):
    """A condition that becomes true once."""

    def is_ready(self, started: Started) -> bool:
        """Return whether it is true now, within a second."""
        ...


@dataclass(frozen=True)
class Runs(Readiness):
    """Ready as soon as the process runs."""

    @override
    def is_ready(self, started: Started) -> bool:
        return started.exit_code() is None


@dataclass(frozen=True)
class Finished(Readiness):
    """Ready when the process has exited with code 0."""

    @override
    def is_ready(self, started: Started) -> bool:
        return started.exit_code() == 0


@dataclass(frozen=True)
class OutputHas(Readiness):
    """Ready when its output has this text."""

    text: str

    @override
    def is_ready(self, started: Started) -> bool:
        return self.text in started.output()


@dataclass(frozen=True)
class All(Readiness):
    """Ready when all conditions are true; they are checked in order."""

    conditions: tuple[Readiness, ...]

    @override
    def is_ready(self, started: Started) -> bool:
        return all(condition.is_ready(started) for condition in self.conditions)


@dataclass(frozen=True)
class KafkaAnswers(Readiness):
    """Ready when a broker answers a request; an open port is not enough."""

    bootstrap: str

    @override
    def is_ready(self, started: Started) -> bool:
        return answers(self.bootstrap, "launcher") and started.exit_code() is None


@dataclass(frozen=True)
class HttpOk(Readiness):
    """Ready when GET on this local port returns 200."""

    port: int
    path: str = "/healthz"

    @override
    def is_ready(self, started: Started) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            connection.request("GET", self.path)
            return connection.getresponse().status == http.HTTPStatus.OK and started.exit_code() is None
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
