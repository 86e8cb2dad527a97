"""The progress line of a benchmark: the run, its progress, and the remaining time of all runs."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

Show = Callable[[str, float], None]
"""Takes what is being done, and which part of the run is done, from 0 to 1."""
REFRESH_HZ = 2
TRUST_S = 60.0
"""The weight of the estimates against the measured times: as if they had been right for so long before."""


class Display:
    """A line with a bar; without a terminal, a line for each run. A context manager.

    `expected` is how long all of it takes by estimate, in seconds; what earlier runs took corrects it.
    """

    def __init__(self, console: Console, expected: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._expected, self._expected_done = expected, 0.0
        self._began = clock()
        columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}")]
        self._progress = Progress(*columns, console=console, refresh_per_second=REFRESH_HZ, transient=True)
        self._task = self._progress.add_task("starting", total=expected, left="")
        self._title, self._estimate = "", 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, title: str, estimate: float) -> None:
        """The next run."""
        self._title, self._estimate = title, estimate
        if not self._console.is_terminal:
            self._console.print(f"{title} … (about {self._left(0.0)} left)")
        self.show("starting", 0.0)

    def show(self, what: str, done: float) -> None:
        """How far it is."""
        part = self._estimate * min(1.0, done)
        self._progress.update(
            self._task,
            description=f"{self._title}: {what}",
            completed=self._expected_done + part,
            left=f"about {self._left(part)} left",
        )

    def end(self, line: str) -> None:
        """The run is over; the line stays."""
        self._expected_done += self._estimate
        self._estimate = 0.0
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _left(self, part: float) -> timedelta:
        pace = (self._clock() - self._began + TRUST_S) / (self._expected_done + part + TRUST_S)
        return timedelta(seconds=round(pace * (self._expected - self._expected_done - part)))
