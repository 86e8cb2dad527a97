"""A fault can set the system clock of processes that run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3600
PROCESS = """
import sys, time
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "clock", "log_level": 0})
for _ in sys.stdin:
    began = time.monotonic()
    consumer.poll(0.1)  # a wait until a time of the system clock
    print(time.time(), time.monotonic() - began, flush=True)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_clock_of_a_process_is_set_while_it_runs(tmp_path: Path) -> None:
    clock = SystemClock(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS],
        env=os.environ | clock.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def ahead_s() -> float:
        print(file=stdin, flush=True)
        answered, waited_s = (float(part) for part in stdout.readline().split())
        assert waited_s < HOUR / 2
        return answered - time.time()

    with process:
        assert abs(ahead_s()) < HOUR / 2
        for seconds in (HOUR, -HOUR):
            with clock.ahead(seconds):
                assert abs(ahead_s() - seconds) < HOUR / 2
            assert abs(ahead_s()) < HOUR / 2
        stdin.close()
