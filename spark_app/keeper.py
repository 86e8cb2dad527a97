"""Keeps a lease while the query runs, and stops the query when another job may have the lease."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from spark_app.errors import CheckpointUnreachableError, JobError, LeaseLostError
from spark_app.lease import RENEW_S, WATCH_S, Lease


@contextmanager
def kept(
    lease: Lease, stop_queries: Callable[[], bool], warn: Callable[[str], object] = lambda _: None
) -> Iterator[None]:
    """Renew the lease in the background, and give it back at the end.

    `stop_queries` returns whether one ran, and `warn` gets the reason why it was stopped.

    Two threads: a file system that does not answer must not keep the second one from stopping the query.
    """
    ended = threading.Event()
    threading.Thread(target=renew, args=(lease, ended), daemon=True).start()
    threading.Thread(target=guard, args=(lease, stop_queries, warn, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        with suppress(JobError):
            lease.release()


def renew(lease: Lease, ended: threading.Event) -> None:
    """Renew the lease until `ended` is set or the lease is lost. The next start of the query raises that it is lost."""
    while not ended.wait(RENEW_S):
        try:
            lease.renew()
        except LeaseLostError:
            lease.is_lost = True
            return
        except CheckpointUnreachableError:
            continue


def guard(
    lease: Lease, stop_queries: Callable[[], bool], warn: Callable[[str], object], ended: threading.Event
) -> None:
    """Stop the query whenever the lease is not provably this job's."""
    while not ended.wait(WATCH_S):
        problem = lease.problem()
        if problem and stop_queries():
            warn(f"{problem}. The query stops")
