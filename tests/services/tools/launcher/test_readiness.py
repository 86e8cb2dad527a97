from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from services.tools.launcher.readiness import All, Finished, HttpOk, KafkaAnswers, OutputHas, Runs
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.tools.broker.embedded import EmbeddedBroker


@dataclass
class FakeProcess:
    printed: str = ""
    code: int | None = None

    def output(self) -> str:
        return self.printed

    def exit_code(self) -> int | None:
        return self.code


class Health(BaseHTTPRequestHandler):
    """Healthy at /healthz only."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_the_state_and_the_output_of_a_process() -> None:
    assert Runs().is_ready(FakeProcess())
    assert not Runs().is_ready(FakeProcess(code=0))
    assert Finished().is_ready(FakeProcess(code=0))
    assert not Finished().is_ready(FakeProcess())
    assert not Finished().is_ready(FakeProcess(code=1))
    assert OutputHas("started").is_ready(FakeProcess(printed="it started\n"))
    assert not OutputHas("started").is_ready(FakeProcess())


def test_all_conditions_are_needed() -> None:
    both = All((OutputHas("a"), OutputHas("b")))
    assert both.is_ready(FakeProcess(printed="ab"))
    assert not both.is_ready(FakeProcess(printed="a"))
    assert not both.is_ready(FakeProcess(printed="b"))


def test_an_api_is_ready_when_its_health_check_succeeds(port: int) -> None:
    assert HttpOk(port).is_ready(FakeProcess())
    assert not HttpOk(port).is_ready(FakeProcess(code=1))  # another process answers there
    assert not HttpOk(port, "/").is_ready(FakeProcess())
    assert not HttpOk(free_port_pair()).is_ready(FakeProcess())


def test_kafka_is_not_ready_without_a_broker() -> None:
    assert not KafkaAnswers(f"127.0.0.1:{free_port_pair()}").is_ready(FakeProcess())


@pytest.mark.kafka
def test_a_broker_answers(broker: EmbeddedBroker) -> None:
    assert KafkaAnswers(broker.bootstrap).is_ready(FakeProcess())
