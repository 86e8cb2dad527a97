"""The shutdown of a process without an event loop: SIGTERM and SIGINT ask it to stop."""

import signal
import threading

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_event() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set from now on. Call it in the main thread."""
    stopping = threading.Event()
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stopping.set())
    return stopping
