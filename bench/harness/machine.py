"""Measures the cost of waking another core, which programs with several threads pay for each handover.

A virtual machine may take ten times as long for it as a real one. Every hand-over pays: a job's tasks, the clients of
Kafka, the broker. So latencies, and CPU at low rates, compare only between sessions where this is alike.
"""

import multiprocessing
import os
import time
from contextlib import suppress
from multiprocessing.connection import Connection

from bench.harness import cores
from bench.harness.figures import percentile

TURNS = 3_000


def wake_up_us() -> float | None:
    """Return how long until a process that sleeps on another core has heard, in microseconds.

    It is half of a round trip, the median of many. None where there is one core, or no thread can be
    kept on one.
    """
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) == 1:
        return None
    core, context = cores.measured(), multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    other = context.Process(target=_answer, args=(theirs, core), daemon=True)
    other.start()
    try:
        ours.recv_bytes()
        with cores.left_to(core, os.getpid()):
            return 1e6 * percentile(sorted(_turn(ours) for _ in range(TURNS)), 0.5) / 2
    finally:
        ours.close()
        other.join()


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
