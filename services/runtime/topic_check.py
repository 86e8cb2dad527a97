"""Checks that the topics of a worker exist, at its start and while it runs."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from services.runtime.errors import TopicsMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

log = logging.getLogger(__name__)

EVERY_S = 1.0
RECHECK_S = 10.0
"""The interval while all topics exist."""
PATIENCE_S = 15.0
"""The time for which topics may be missing while the broker answers: it lists a new topic after some time."""


class TopicCheck:
    """Lists the topics until all exist, and then checks their owner; lists them again from time to time.

    Raises TopicsMissingError if one is missing for too long at the start, and the errors of `check_owner`. A topic that
    is deleted later is a `problem`, because the worker continues when the topic is created again.
    """

    def __init__(
        self,
        topics: Collection[str],
        kafka: str,
        check_owner: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics = topics
        self._kafka = kafka
        self._check_owner = check_owner
        self._clock = clock
        self._next_look = float("-inf")
        self._missing_since: float | None = None
        self._has_started = False
        self.is_complete = False
        """Whether all topics existed when they were listed last."""
        self.problem: str | None = None
        """The topics that have been missing for too long since the start, with the remedy. Any thread may read it."""

    def check(self, listed: Callable[[], Collection[str] | None]) -> None:
        """List the topics if the interval has passed. `listed` returns them, or None while no broker answers."""
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + EVERY_S
        there = listed()
        if there is not None:
            self._judge([topic for topic in self._topics if topic not in there], now)

    def _judge(self, missing: list[str], now: float) -> None:
        if not missing:
            self._complete(now)
        elif self._missing_since is None:
            self._missing_since, self.is_complete = now, False
            facts = {"topics": missing, "run": "stateloop topics", "patience_s": PATIENCE_S}
            log.warning("topics are missing", extra={"facts": facts})
        elif now - self._missing_since >= PATIENCE_S:
            if not self._has_started:
                raise TopicsMissingError(missing, self._kafka)
            names = ", ".join(missing)
            self.problem = f"the broker no longer has {names}: run `stateloop topics`, then the worker continues"

    def _complete(self, now: float) -> None:
        """Check the owner once, and again when topics were missing: another application may have created them."""
        if not self.is_complete:
            self._check_owner()
        self._has_started = self.is_complete = True
        self._missing_since = self.problem = None
        self._next_look = now + RECHECK_S
