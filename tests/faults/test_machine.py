"""Faults can set the system clock of processes that run, and slow their link to the broker down."""

from __future__ import annotations

import os
import shutil
import socketserver
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.faults.machine import BYTES_PER_S, DELAY_S, BrokerLink, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

HOUR = 3600
SIZE = 300_000
CLOCK = """
import sys, time
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "clock", "log_level": 0})
for _ in sys.stdin:
    began = time.monotonic()
    consumer.poll(0.1)  # a wait until a time of the system clock
    print(time.time(), time.monotonic() - began, flush=True)
"""
CLIENT = """
import socket, sys, time
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for line in sys.stdin:
    began, left = time.monotonic(), int(line)
    connection.sendall(b"x" * left)
    while left:
        left -= len(connection.recv(65536))
    print(time.monotonic() - began, flush=True)
"""


@contextmanager
def running(program: str, environment: Mapping[str, str], *arguments: str) -> Iterator[Callable[[str], list[float]]]:
    """Run a program, and give a function that sends it a line and returns the figures of its answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def ask(line: str = "") -> list[float]:
        print(line, file=stdin, flush=True)
        return [float(figure) for figure in stdout.readline().split()]

    with process:
        yield ask
        stdin.close()


def test_the_clock_of_a_process_is_set_while_it_runs(tmp_path: Path) -> None:
    clock = SystemClock(tmp_path)
    with running(CLOCK, clock.environment) as ask:

        def ahead_s() -> float:
            answered, waited_s = ask("")
            assert waited_s < HOUR / 2
            return answered - time.time()

        assert abs(ahead_s()) < HOUR / 2
        for seconds in (HOUR, -HOUR):
            with clock.ahead(seconds):
                assert abs(ahead_s() - seconds) < HOUR / 2
            assert abs(ahead_s()) < HOUR / 2


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while content := self.connection.recv(65536):
            self.connection.sendall(content)


def test_the_link_of_a_process_is_slow_while_the_fault_lasts(tmp_path: Path) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        link = BrokerLink(tmp_path, port)
        with running(CLIENT, link.environment, str(port)) as ask:
            with link.slow():
                assert ask("1") >= [2 * DELAY_S]
                assert ask(str(SIZE)) >= [2 * DELAY_S + SIZE / BYTES_PER_S]
            assert ask(str(SIZE)) < [SIZE / BYTES_PER_S]
        server.shutdown()
