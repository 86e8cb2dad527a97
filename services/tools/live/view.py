"""The data of the live view: the latest responses of the query service. No I/O; times are passed in."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import datetime
from statistics import quantiles
from typing import Any

Json = dict[str, Any]

MAX_ROWS = 80
MAX_POINTS = 600
LATENCIES = 500


@dataclass
class LiveView:
    """The state of the screen. `error` is set while the query service does not answer."""

    url: str = ""
    """The instance that answers."""
    loop: Json = field(default_factory=dict)
    """The latest response of /v1/loop; empty before the first."""
    graph: Json = field(default_factory=lambda: {"nodes": ()})
    processes: dict[str, str] = field(default_factory=dict)
    """The state of each process, by the launcher."""
    error: str = "Waiting for the query service"
    history: deque[Json] = field(default_factory=lambda: deque(maxlen=MAX_POINTS))
    keys: OrderedDict[str, Json] = field(default_factory=OrderedDict)
    """The latest versions with the time at which they were received, the last one first."""
    _latencies: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES))

    def update_loop(self, loop: Json, graph: Json) -> None:
        """Store the responses, and append the new points to the history."""
        self.loop, self.graph, self.error = loop, graph, ""
        self.history.extend(point for point in loop["history"] if point["at"] > self.newest_point)

    @property
    def newest_point(self) -> int:
        """The time of the newest point of the history, in milliseconds since 1970."""
        return int(self.history[-1]["at"]) if self.history else 0

    def update_key(self, answer: Json, now: datetime) -> None:
        """Put the key first. A new result of an enrichment gives a latency."""
        key, results = answer["key"], answer["value"].get("enrichments", {})
        if len(results) > len(self.keys.get(key, answer)["value"].get("enrichments", {})):
            answered = max(datetime.fromisoformat(result["ts"]) for result in results.values())
            self._latencies.append((now - answered).total_seconds() * 1000)
        self.keys[key] = answer | {"received": now}
        self.keys.move_to_end(key, last=False)
        while len(self.keys) > MAX_ROWS:
            self.keys.popitem()

    @property
    def latency_ms(self) -> tuple[float, float] | None:
        """The p50 and p95 of the time from an API's answer at the worker until the new state is received here."""
        if len(self._latencies) < 2:  # noqa: PLR2004  # quantiles need two
            return None
        cuts = quantiles(self._latencies, n=20)
        return cuts[9], cuts[18]
