"""Keeps a lease while the query runs, and stops the query when another job may have the lease.

On a machine that stood still, or was too busy, the lease is overdue although no other job claims it. So before the
query stops, the next renewal has some time to find out.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from spark_app.checkpoint.fence import Fence
from spark_app.checkpoint.lease import LEASE_S, RENEW_S, WATCH_S, CheckpointLease
from spark_app.errors import CheckpointUnreachableError, JobError, LeaseLostError

CONFIRM_S = RENEW_S + 2.0
"""The time for which an overdue lease may still be renewed, while this process runs."""


@contextmanager
def kept(
    lease: CheckpointLease,
    stop_queries: Callable[[], bool],
    warn: Callable[[str], object] = lambda _: None,
    fence: Fence | None = None,
) -> Iterator[None]:
    """Renew the lease in the background, and give it back at the end.

    `stop_queries` returns whether one ran, and `warn` gets the reason why it was stopped. `fence` gets each renewal.

    Two threads: a file system that does not answer must not keep the second one from stopping the query.
    """
    ended = threading.Event()
    if fence is not None:
        fence.renew(lease.renew)
    threading.Thread(target=renew, args=(lease, ended, fence), daemon=True).start()
    threading.Thread(target=guard, args=(lease, stop_queries, warn, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        with suppress(JobError):
            lease.release()
        if fence is not None:
            fence.remove()


def renew(lease: CheckpointLease, ended: threading.Event, fence: Fence | None = None) -> None:
    """Renew the lease until `ended` is set or the lease is lost. The next start of the query raises that it is lost."""
    while not ended.wait(RENEW_S):
        try:
            if fence is None:
                lease.renew()
            else:
                fence.renew(lease.renew)
        except LeaseLostError:
            lease.is_lost = True
            return
        except CheckpointUnreachableError:
            continue


def guard(
    lease: CheckpointLease, stop_queries: Callable[[], bool], warn: Callable[[str], object], ended: threading.Event
) -> None:
    """Stop the query when another job has the lease, or may have it and no renewal finds out."""
    doubtful_since: float | None = None
    while not ended.wait(WATCH_S):
        now = lease.clock()
        if now - lease.renewed_at < LEASE_S - CONFIRM_S:
            doubtful_since = None
        elif doubtful_since is None:
            doubtful_since = now
        is_confirmed = lease.is_lost or (doubtful_since is not None and now - doubtful_since >= CONFIRM_S)
        problem = lease.problem()
        if problem and is_confirmed and stop_queries():
            warn(f"{problem}. The query stops")
