"""A process stops whichever of its threads receives the signal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadline import DEADLINE_S

CHECKOUT = Path(__file__).parents[3]
WAITING = """
import signal, sys, threading, time
from concurrent.futures import Future
from services.runtime.shutdown import stop_event

stopping = stop_event()
main, worker, done = threading.main_thread(), threading.Thread(target=threading.Event().wait, daemon=True), Future()
worker.start()

def stop():
    receiver = {"main": main, "other": worker}[sys.argv[1]]
    while sys._current_frames()[main.ident].f_code.co_name != "wait":
        time.sleep(0.01)
    time.sleep(0.1)  # it waits in the kernel
    signal.pthread_kill(receiver.ident, signal.Signals[sys.argv[2]])
    stopping.wait()
    done.set_result(None)

threading.Thread(target=stop).start()
done.result()  # waits without a timeout, as where the job waits for its applications
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("receiver", ["main", "other"])
def test_a_signal_stops_a_process_whose_main_thread_waits(receiver: str, number: str) -> None:
    """The kernel may deliver it to any thread: under load, if the main thread has another signal to handle."""
    waiting = [sys.executable, "-c", WAITING, receiver, number]
    ended = subprocess.run(waiting, cwd=CHECKOUT, timeout=DEADLINE_S, check=False, capture_output=True)
    assert ended.returncode == 0, ended.stderr.decode()
