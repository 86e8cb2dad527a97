"""The batches of a running job: how long they last in tests, and when records are committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.spark_app.running import until

if TYPE_CHECKING:
    from tests.spark_app.running import Job

SHORT = {"STATELOOP_BATCH": "PT3S"}
"""The environment of a job with short batches, for tests that wait for the end of some. Each end takes 1.5 s of CPU,
also of an idle job: shorter ones take more from the other tests than they save here."""


def committed(job: Job, records: int, more: int = 0) -> list[dict[str, Any]]:
    """Return all batches, when the job has committed this many records since its first start, and `more` batches after.

    The job of a live topic also reads its own heartbeats, which count.
    """

    def are_committed() -> bool:
        counts: list[int] = [batch["records"] for batch in job.lines("batch")]
        return sum(counts) >= records

    until(lambda: job.ended() or are_committed(), f"{records} records in committed batches, see {job.log}")
    assert are_committed(), job.log.read_text(encoding="utf-8")[-3000:]
    return job.batches(more) if more else job.lines("batch")
