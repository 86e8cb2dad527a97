"""Logs as JSON, one object per line, on stderr."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

REPEAT_S = 30.0
"""How often a warning that repeats is logged: while a broker is away, its client logs each failed connection."""
MOST_KINDS = 1000
"""How many kinds of warnings are told apart; the oldest are forgotten, and so logged anew."""


class JsonLines(logging.Formatter):
    """A log record as a JSON object. Give its facts as `extra={"facts": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class Repeats(logging.Filter):
    """Lets a warning that repeats through once in a while. Two are alike when they differ in numbers only."""

    def __init__(self, every_s: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._every_s = every_s
        self._clock = clock
        self._let: OrderedDict[str, float] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is logged."""
        if record.levelno < logging.WARNING:
            return True
        kind, now = re.sub(r"\d+", "#", f"{record.name} {record.getMessage()}"), self._clock()
        if now - self._let.get(kind, -self._every_s) < self._every_s:
            return False
        self._let[kind] = now
        self._let.move_to_end(kind)
        if len(self._let) > MOST_KINDS:
            self._let.popitem(last=False)
        return True


def to_stderr() -> None:
    """Send all logs there, from INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Repeats(REPEAT_S, time.monotonic))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
