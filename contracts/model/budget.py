"""A budget: the number of requests that a device may cause in a period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from pydantic import model_validator

from contracts.model.policy import NO_TIME, Declared


class Budget(Declared):
    """At most this number of `requests` for one window in each period of `per`, counted from its `first_seen`.

    A request counts once, with all its calls, and as soon as it begins. Beyond the budget, a device gets no request
    until the next period.
    """

    requests: int
    per: timedelta = timedelta(hours=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._must("requests", self.requests >= 1, "allows no request", "requests=20, or leave the budget out")
        self._must("per", self.per > NO_TIME, "is no time", "per=timedelta(hours=1)")
        return self

    def period(self, first_seen: datetime, time: datetime) -> int:
        """The number of the period that a time falls into."""
        return (time - first_seen) // self.per
