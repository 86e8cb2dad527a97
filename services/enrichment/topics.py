"""Checks at the start of a worker that its topics exist."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from services.enrichment.errors import TopicsMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

log = logging.getLogger(__name__)

EVERY_S = 1.0
PATIENCE_S = 15.0
"""How long topics may be missing while the broker answers: it lists a new topic after some time."""


class TopicCheck:
    """Lists the topics once a second until all exist, and then checks their owner.

    Raises TopicsMissingError if one is missing for too long, and the errors of `check_owner`.
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
        self._looked = float("-inf")
        self._missing_since: float | None = None
        self._done = False

    def check(self, listed: Callable[[], Collection[str] | None]) -> None:
        """List the topics if the interval has passed. `listed` returns them, or None while no broker answers."""
        now = self._clock()
        if self._done or now - self._looked < EVERY_S:
            return
        self._looked = now
        there = listed()
        if there is not None:
            self._judge([topic for topic in self._topics if topic not in there], now)

    def _judge(self, missing: list[str], now: float) -> None:
        if not missing:
            self._done = True
            self._check_owner()
        elif self._missing_since is None:
            self._missing_since = now
            facts = {"topics": missing, "run": "stateloop topics", "patience_s": PATIENCE_S}
            log.warning("topics are missing", extra={"facts": facts})
        elif now - self._missing_since >= PATIENCE_S:
            raise TopicsMissingError(missing, self._kafka)
