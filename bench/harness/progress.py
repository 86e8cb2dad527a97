"""The progress of a benchmark: which run it is, of how many, and what it does."""

from typing import Self

from rich.console import Console
from rich.status import Status


class Display:
    """A line that changes; without a terminal, a line for each run. A context manager."""

    def __init__(self, console: Console, runs: int) -> None:
        self._console, self._runs, self._number = console, runs, 0
        self._title = ""
        self._status = Status("starting", console=console)

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def begin(self, title: str) -> None:
        """The next run."""
        self._number += 1
        self._title = f"run {self._number} of {self._runs}: {title}"
        if not self._console.is_terminal:
            self._console.print(f"{self._title} …", highlight=False)
        self.show("starting")

    def show(self, what: str) -> None:
        """What it does."""
        self._status.update(f"{self._title}: {what}")

    def end(self, line: str) -> None:
        """The run is over; the line stays."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
