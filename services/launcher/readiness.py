"""How to know that a part is ready for those that come after it."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

ANSWER_S = 1.0


class Started(Protocol):
    """A process that was started, as its readiness sees it."""

    def output(self) -> str:
        """What it wrote since its start."""
        ...

    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        ...


class Readiness(Protocol):
    """A condition that comes true once."""

    def is_ready(self, started: Started) -> bool:
        """Whether it is true now; takes a second at most."""
        ...


@dataclass(frozen=True)
class Runs:
    """Ready as soon as it runs."""

    def is_ready(self, started: Started) -> bool:
        """See Readiness."""
        return started.exit_code() is None


@dataclass(frozen=True)
class Finished:
    """Ready when it has done its work."""

    def is_ready(self, started: Started) -> bool:
        """See Readiness."""
        return started.exit_code() == 0


@dataclass(frozen=True)
class Says:
    """Ready when it has written this."""

    text: str

    def is_ready(self, started: Started) -> bool:
        """See Readiness."""
        return self.text in started.output()


@dataclass(frozen=True)
class All:
    """Ready when each of these is true; they are asked in their order."""

    conditions: tuple[Readiness, ...]

    def is_ready(self, started: Started) -> bool:
        """See Readiness."""
        return all(condition.is_ready(started) for condition in self.conditions)


@dataclass(frozen=True)
class KafkaAnswers:
    """Ready when a broker answers a request; an open port alone does not say so."""

    bootstrap: str

    def is_ready(self, started: Started) -> bool:
        """See Readiness."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100})
        try:
            client.list_topics(timeout=ANSWER_S)
        except KafkaException:
            return False
        return started.exit_code() is None


@dataclass(frozen=True)
class HttpOk:
    """Ready when GET on this port of this machine answers 200."""

    port: int
    path: str = "/healthz"

    def is_ready(self, started: Started) -> bool:
        """See Readiness."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            connection.request("GET", self.path)
            return connection.getresponse().status == http.HTTPStatus.OK and started.exit_code() is None
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
