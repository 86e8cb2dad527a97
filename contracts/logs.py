"""The logs of all services: JSON, one object per line."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

REPEAT_S = 30.0
"""The interval at which a repeated warning is logged."""
MOST_KINDS = 1000
"""The number of kinds of warnings that are remembered; an older one is logged again."""


class JsonLines(logging.Formatter):
    """A log record as a JSON object. Give its facts as `extra={"facts": {…}}`. `trace_id` names its trace."""

    def __init__(self, trace_id: Callable[[], str | None] | None = None) -> None:
        super().__init__()
        self._trace_id = trace_id

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if repeated := getattr(record, "repeated", 0):
            line["repeated"] = repeated
        if self._trace_id and (trace_id := self._trace_id()):
            line["trace_id"] = trace_id
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class Repeats(logging.Filter):
    """Logs a repeated warning at most once per interval, with the number of suppressed ones as `repeated`.

    While a broker is away, its client logs each failed connection. Two warnings are alike when they differ in numbers
    only, as in a time or a port.
    """

    def __init__(self, every_s: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._logged_at: OrderedDict[str, float] = OrderedDict()
        self._suppressed: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether it is logged."""
        if record.levelno < logging.WARNING:
            return True
        kind, now = _kind(record), self._clock()
        with self._lock:
            logged_at = self._logged_at.get(kind)
            if logged_at is not None and now - logged_at < self._every_s:
                self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
                return False
            self._logged_at[kind] = now
            self._logged_at.move_to_end(kind)
            record.repeated = self._suppressed.pop(kind, 0)
            if len(self._logged_at) > MOST_KINDS:
                self._suppressed.pop(self._logged_at.popitem(last=False)[0], None)
        return True


def to(stream: TextIO, trace_id: Callable[[], str | None] | None = None) -> None:
    """Send all logs there, from INFO on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines(trace_id))
    handler.addFilter(Repeats(REPEAT_S, time.monotonic))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _kind(record: logging.LogRecord) -> str:
    error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
    return re.sub(r"\d+", "#", f"{record.name} {record.getMessage()} {getattr(record, 'facts', '')} {error}")
