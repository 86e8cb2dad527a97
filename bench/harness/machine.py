"""The cores of the machine: which one the measured process has, and what it costs to wake another one.

A virtual machine may take ten times as long for it as a real one. Every hand-over pays: a job's tasks, the clients of
Kafka, the broker. So latencies, and CPU at low rates, compare only between sessions where this is alike.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from bench.harness.figures import percentile

PINNED = ("taskset", "-c", "{core}")
"""The prefix of a command that runs on that core alone."""
TURNS = 3_000


def measured_core() -> int:
    """The core that measured processes are pinned to: the last one that we may use."""
    return max(os.sched_getaffinity(0))


@contextmanager
def kept_from(core: int, *pids: int) -> Iterator[None]:
    """Keep these processes, and what they start, from this core; where there is no other one, nothing is done."""
    before = os.sched_getaffinity(0)
    _pin(pids, before - {core} or before)
    try:
        yield
    finally:
        _pin(pids, before)


def wake_up_us() -> float | None:
    """Return how long until a process that sleeps on another core has heard, in microseconds.

    It is half of a round trip, the median of many. None where there is one core, or no thread can be kept on one.
    """
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) == 1:
        return None
    core, context = measured_core(), multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    other = context.Process(target=_answer, args=(theirs, core), daemon=True)
    other.start()
    try:
        ours.recv_bytes()
        with kept_from(core, os.getpid()):
            return 1e6 * percentile(sorted(_turn(ours) for _ in range(TURNS)), 0.5) / 2
    finally:
        ours.close()
        other.join()


def _pin(pids: tuple[int, ...], cores: set[int]) -> None:
    """Bind each thread to the cores; a new thread inherits them from the thread that starts it."""
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def _turn(connection: Connection) -> float:
    began = time.perf_counter()
    connection.send_bytes(b"?")
    connection.recv_bytes()
    return time.perf_counter() - began


def _answer(connection: Connection, core: int) -> None:
    """Until the other one is gone."""
    os.sched_setaffinity(0, {core})
    connection.send_bytes(b"ready")
    with suppress(EOFError, BrokenPipeError):
        while True:
            connection.send_bytes(connection.recv_bytes())
