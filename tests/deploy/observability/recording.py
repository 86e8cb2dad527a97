"""Scrapes of /metrics, once a minute, as the input series of promtool's unit tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

STARTED = "process_start_time_seconds"


class Recording:
    """The samples of these metrics, by the minute of their scrape."""

    def __init__(self, metrics: Collection[str]) -> None:
        self._metrics = metrics
        self._series: dict[str, dict[int, float]] = {}
        self._minutes = 0

    def scrape(self, job: str, instance: str, text: str, restarted_s: int = 0) -> None:
        """Record what a process exports now, which started so many seconds after its first start."""
        target = {"job": job, "instance": instance}
        self.note("up", target, 1)
        lines = [
            line for line in text.splitlines(keepends=True) if re.split("[{ ]", line, maxsplit=1)[0] in self._metrics
        ]
        for family in text_string_to_metric_families("".join(lines)):
            for name, labels, value, *_ in family.samples:
                self.note(name, target | labels, value + restarted_s * (name == STARTED))

    def note(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Record one sample of this minute."""
        if name in self._metrics:
            divided = ", ".join(f'{label}="{text}"' for label, text in labels.items())
            self._series.setdefault(f"{name}{{{divided}}}", {})[self._minutes] = value

    def next_minute(self) -> None:
        """End the minute."""
        self._minutes += 1

    def input_series(self) -> list[dict[str, str]]:
        """All series, as promtool reads them."""
        return [{"series": series, "values": " ".join(self._values(found))} for series, found in self._series.items()]

    def _values(self, found: Mapping[int, float]) -> Iterator[str]:
        """A series ends with a marker, as Prometheus writes one when a target no longer has it."""
        for minute in range(self._minutes):
            yield repr(found[minute]) if minute in found else ("stale" if minute - 1 in found else "_")
