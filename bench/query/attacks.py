"""How long other clients wait while some pipeline reads without end, or read no answers: `-m bench.query.attacks`.

It asks a query service that runs already, with `STATELOOP_RATE=0`, for the keys of `bench/query/records.py`.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from bench.harness.background import Background
from bench.harness.figures import percentiles
from bench.query.records import STATE, key

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event as Flag

BLOCK = 3_000
SILENT = 200
PAUSE_S = 0.005
"""Between two reads of the client that is measured."""
READ = 4 * 1024 * 1024
IDLE_S = 0.001


def block() -> bytes:
    """Reads of one key, to be sent at once."""
    return f"GET /v1/states/{STATE}/{key(0)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * BLOCK


def pipelining(port: int, stop: Flag) -> None:
    """One connection that sends blocks without end, and reads what comes."""
    with socket.create_connection(("127.0.0.1", port)) as one:
        _send_without_end([one], stop, reads=True)


def silent(port: int, stop: Flag) -> None:
    """Many connections that send blocks as long as they are taken, and read nothing."""
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(SILENT)]
    _send_without_end(connections, stop, reads=False)
    for one in connections:
        one.close()


def waited(port: int, seconds: float) -> list[float]:
    """How long another client waited for each of its answers, in seconds; it keeps one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        connection.request("GET", f"/v1/states/{STATE}/{key(1)}")
        connection.getresponse().read()
        found.append(time.perf_counter() - began)
        time.sleep(PAUSE_S)
    connection.close()
    return found


def main() -> None:
    """Print the figures of each attack, and of none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    print(f"{'':12}{'answers':>10}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}")  # noqa: T201  # a command prints
    _print("none", waited(arguments.port, arguments.seconds))
    for attack in (pipelining, silent):
        with Background(attack, arguments.port) as running:
            _print(attack.__name__, waited(arguments.port, arguments.seconds))
            running.finish()


def _print(name: str, waits: list[float]) -> None:
    summary = percentiles(waits)
    figures = "".join(f"{summary[one]:10.1f}" for one in ("p50_ms", "p99_ms", "max_ms"))
    print(f"{name:12}{len(waits):10}{figures}", flush=True)  # noqa: T201  # a command prints


def _send_without_end(connections: list[socket.socket], stop: Flag, *, reads: bool) -> None:
    for one in connections:
        one.setblocking(False)  # noqa: FBT003  # positional only
    data = block()
    left = dict.fromkeys(connections, data)
    while not stop.is_set():
        for one in connections:
            with suppress(BlockingIOError):
                left[one] = left[one][one.send(left[one]) :] or data
            with suppress(BlockingIOError):
                reads and one.recv(READ)
        time.sleep(IDLE_S)


if __name__ == "__main__":
    main()
