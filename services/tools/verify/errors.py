"""The errors of a comparison, each with a remedy in its message."""

from __future__ import annotations

from contracts.errors import RetryableError


class UnpublishedStateError(RetryableError):
    """The job has not published the state of its checkpoint since a restore or a rebuild."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(
            f"the job has not published the state of {checkpoint} since it was restored or rebuilt: start the job, and "
            "compare when /readyz answers"
        )
        self.checkpoint = checkpoint
