"""Shows how a replay gets on: a bar in a terminal, otherwise a line now and then."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

LINE_EVERY_S: Final = 10.0
BAR_EVERY_S: Final = 0.1


class Report(Protocol):
    """Called with every event that was sent."""

    def __call__(self, sent: int, ts: datetime) -> None:
        """Report that `sent` events were sent, and the time of the last one."""


class Every:
    """Calls `show(sent, ts, events per second)` at most once in `seconds` seconds."""

    def __init__(
        self, seconds: float, clock: Callable[[], float], show: Callable[[int, datetime, float], None]
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._show = show
        self._last = (0, clock())
        self._latest: tuple[int, datetime] | None = None

    def __call__(self, sent: int, ts: datetime) -> None:
        """Show it if it is time to."""
        self._latest = (sent, ts)
        before, then = self._last
        now = self._clock()
        if now - then >= self._seconds:
            self._last = (sent, now)
            self._show(sent, ts, (sent - before) / (now - then))

    def close(self) -> None:
        """Show how it ended, with the rate of 0 that it has then."""
        if self._latest is not None:
            self._show(*self._latest, 0.0)


@contextmanager
def reporting(console: Console, begin: datetime, end: datetime, clock: Callable[[], float]) -> Iterator[Report]:
    """A report on the data from begin to end, displayed while the context is open."""
    if not console.is_terminal:
        yield Every(LINE_EVERY_S, clock, lambda *facts: console.print(line(*facts), highlight=False, soft_wrap=True))
        return
    columns = TextColumn("flights"), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console) as progress:
        span = (end - begin).total_seconds()
        bar = progress.add_task("", total=span)

        def show(sent: int, ts: datetime, rate: float) -> None:
            progress.update(bar, completed=min(span, (ts - begin).total_seconds()), description=line(sent, ts, rate))

        report = Every(BAR_EVERY_S, clock, show)
        yield report
        report.close()


def line(sent: int, ts: datetime, rate: float) -> str:
    """One line on the state of things."""
    return f"{sent:,} events, {ts:%Y-%m-%d %H:%M} UTC, {rate:,.0f} events/s"
