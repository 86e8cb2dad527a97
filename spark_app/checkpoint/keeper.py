"""Keeps a lease while the query runs, and stops the query when the lease is lost, or no renewal is answered for long.

On a machine that stood still, or is too busy, the lease is overdue although no other job claims it. Then the fence
withholds the rows, the next renewal finds out whose the lease is, and the query goes on or stops.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from spark_app.checkpoint.fence import Fence
from spark_app.checkpoint.lease import LEASE_S, RENEW_S, WATCH_S, CheckpointLease
from spark_app.errors import CheckpointUnreachableError, JobError, LeaseLostError

CONFIRM_S = RENEW_S + 2.0
"""How long before its end an unrenewed lease is in doubt, and for how long a query without a fence goes on then."""
UNANSWERED_S = 60.0
"""For how long a query behind a fence goes on with a lease in doubt, while this process runs."""


@contextmanager
def kept(
    lease: CheckpointLease,
    stop_queries: Callable[[], bool],
    warn: Callable[[str], object] = lambda _: None,
    fence: Fence | None = None,
) -> Iterator[Callable[[], None]]:
    """Renew the lease in the background, and give it back at the end. Give `require_lease` of it.

    `stop_queries` returns whether one ran, and `warn` gets the reason why it was stopped. `fence` gets each renewal.

    Two threads: a file system that does not answer must not keep the second one from stopping the query.
    """
    ended = threading.Event()
    renewal = lease.renew if fence is None else lambda: fence.renew(lease)
    is_fenced = fence is not None and fence.is_complete
    renewal()
    threading.Thread(target=renew, args=(lease, ended, renewal), daemon=True).start()
    threading.Thread(target=guard, args=(lease, stop_queries, warn, ended, is_fenced), daemon=True).start()
    try:
        yield partial(require_lease, lease)
    finally:
        ended.set()
        if fence is not None:
            fence.close()
        with suppress(JobError):
            lease.release()


def require_lease(lease: CheckpointLease, sleep: Callable[[float], object] = time.sleep) -> None:
    """Return when the lease is the newest one, and was renewed lately by the thread of `kept`.

    It waits after this process stood still, and while the file system does not answer, but not for long. Raises
    LeaseLostError and CheckpointUnreachableError.
    """
    began = lease.clock()
    while True:
        try:
            lease.require_newest()  # a machine that was suspended has a monotonic clock that stood still
        except CheckpointUnreachableError as error:
            unreachable = error
        else:
            if (problem := lease.problem()) is None:
                return
            unreachable = CheckpointUnreachableError(lease.files.path, problem)
        if lease.clock() - began > UNANSWERED_S:
            raise unreachable
        sleep(WATCH_S)


def renew(lease: CheckpointLease, ended: threading.Event, renewal: Callable[[], object]) -> None:
    """Renew the lease until `ended` is set or the lease is lost. The next start of the query raises that it is lost."""
    while not ended.wait(RENEW_S):
        try:
            renewal()
        except LeaseLostError:
            lease.is_lost = True
            return
        except CheckpointUnreachableError:
            continue


def guard(
    lease: CheckpointLease,
    stop_queries: Callable[[], bool],
    warn: Callable[[str], object],
    ended: threading.Event,
    is_fenced: bool,  # noqa: FBT001  # a thread's target
) -> None:
    """Stop the query when another job has the lease, or when no renewal is answered for long.

    Behind a fence its looks measure that time, and not the clock: while this process stood still, nothing could answer
    it. Without a fence the clock counts too, since rows pass meanwhile.
    """
    patience_s = UNANSWERED_S if is_fenced else CONFIRM_S
    doubtful, answered, since = 0, lease.renewed_at, lease.clock()
    while not ended.wait(WATCH_S):
        is_doubtful = lease.renewed_at == answered and lease.clock() - answered >= LEASE_S - CONFIRM_S
        doubtful, answered = doubtful + 1 if is_doubtful else 0, lease.renewed_at
        since = since if doubtful > 1 else lease.clock()
        waited_s = max(doubtful * WATCH_S, 0.0 if is_fenced else lease.clock() - since)
        problem = lease.problem()
        if problem and (lease.is_lost or waited_s > patience_s) and stop_queries():
            warn(f"{problem}. The query stops")
