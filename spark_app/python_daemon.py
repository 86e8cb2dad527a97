"""PySpark's daemon, which forks the Python workers of decoders and processors, without tracebacks at the end of a task.

When a query stops, Spark closes the connections of its workers. A worker that has output left fails to write it, and
PySpark's daemon prints a traceback of BrokenPipeError for each, although nothing is lost. Other errors are printed.
`spark.python.daemon.module` names this module; it runs on executors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import daemon as _daemon

if TYPE_CHECKING:
    import socket

daemon: Any = _daemon
run_worker = daemon.worker
CLOSED = 1
"""The exit code of a worker whose connection is closed: it is not used again."""


def worker(connection: socket.socket, authenticated: bool) -> int:  # noqa: FBT001  # the daemon calls it
    """Run a worker on a connection, and return its exit code."""
    try:
        code: int = run_worker(connection, authenticated)
    except (BrokenPipeError, ConnectionResetError):
        return CLOSED
    return code


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
