"""The shutdown of a process without an event loop: SIGTERM and SIGINT ask it to stop."""

import signal
import socket
import threading
from collections.abc import Collection

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_event(signals: Collection[signal.Signals] = STOP_SIGNALS) -> threading.Event:
    """Return an event that these signals set from now on. Call it once, in the main thread.

    Python runs a signal's handler in the main thread. The kernel may deliver the signal to another thread, if the main
    thread has just received one; then a main thread that waits for a lock does not wake up, and the handler does not
    run. So a thread of its own reads the numbers of signals, which Python writes to a socket in whichever thread they
    arrive (https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd).
    """
    stopping = threading.Event()
    numbers, written = socket.socketpair()
    written.settimeout(0)
    threading.Thread(target=_read, args=(numbers, written, frozenset(signals), stopping), daemon=True).start()
    signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def _read(
    numbers: socket.socket, written: socket.socket, signals: Collection[signal.Signals], stopping: threading.Event
) -> None:
    """Set the event when one of the signals arrives. Both ends are open as long as this runs."""
    with numbers, written:
        while received := numbers.recv(64):
            if any(number in signals for number in received):
                stopping.set()
