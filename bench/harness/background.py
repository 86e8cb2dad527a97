"""A function in a process of its own, which runs until it is stopped and then gives its result.

The load and the receiver are such processes, so that neither waits for the other, nor for the progress line.
"""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as Flag
from typing import Any, Generic, Self, TypeVar

from bench.harness.errors import HelperExitedError

T = TypeVar("T")
END_S = 10


class Background(Generic[T]):
    """A context manager; leaving it ends the process. The function's last argument is the flag that stops it."""

    def __init__(self, task: Callable[..., T], *args: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._name = task.__name__
        self._stop = context.Event()
        self._result, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(task, args, self._stop, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join(END_S)

    def finish(self) -> T:
        """Stop it, and return its result. Raises HelperExitedError."""
        self._stop.set()
        try:
            result: T = self._result.recv()
        except EOFError as error:
            raise HelperExitedError(self._name) from error
        self._process.join(END_S)
        return result


def _run(task: Callable[..., T], args: tuple[Any, ...], stop: Flag, result: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    result.send(task(*args, stop))
