"""Replays the flights: `python -m examples.flights.replay --from 2013-01-01 --days 1 --speed 600`.

SIGINT and SIGTERM stop it; with --position, the next one goes on from there.
"""

import argparse
import math
import signal
import sys
import time
from datetime import date, timedelta
from pathlib import Path
from threading import Event as Flag

from rich.console import Console

from examples.flights import tables
from examples.flights.application import app
from examples.flights.replay.pace import Pace
from examples.flights.replay.position import PositionFile
from examples.flights.replay.progress import reporting
from examples.flights.replay.run import Replay
from examples.flights.replay.sender import Sender, connect
from examples.flights.replay.settings import ReplaySettings
from examples.flights.stream import begin, stream_after
from stateloop import StateloopError
from stateloop.settings import read


def main(arguments: list[str] | None = None) -> None:
    """Replay until the end of the days or until stopped; or exit with 1 after one line with the remedy."""
    options = parser().parse_args(arguments)
    stopped = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        print(replay(options, stopped), flush=True)
    except StateloopError as error:
        sys.exit(f"stateloop replay: {error}")


def replay(options: argparse.Namespace, stopped: Flag) -> str:
    """Replay by the options. Returns the closing line. Raises FlightsError or InvalidSettingsError."""
    settings = read(ReplaySettings)
    days = tables.days(options.first, options.days)
    position = PositionFile(options.position, options.first, options.days)
    last = position.read()
    sender = Sender(connect(settings.kafka, app.topics.events), app.topics.events)
    run = Replay(sender, Pace(options.speed, time.monotonic), position, stopped.is_set)
    period = begin(days[0]), begin(days[-1] + timedelta(days=1))
    with reporting(Console(), *period, time.monotonic) as report:
        ended = run.run(stream_after(days, last), report)
    return closing_line(sender.sent, options, ended=ended)


def closing_line(sent: int, options: argparse.Namespace, *, ended: bool) -> str:
    """Return the last line of the output."""
    if not ended:
        again = "the same command goes on" if options.position else "without --position, the next begins anew"
        return f"Stopped after {sent:,} events: {again}"
    span = f"{options.days} day{'s' * (options.days > 1)} from {options.first}"
    if sent == 0:
        return f"The end of the data ({span}) was reached before: remove {options.position} to send it again"
    return f"The end of the data: {sent:,} events sent, {span}"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m examples.flights.replay", description="Send the flights' events.")
    made.add_argument("--from", dest="first", type=date.fromisoformat, default=date(2013, 1, 1), metavar="DATE")
    made.add_argument("--days", type=whole, default=1)
    made.add_argument("--speed", type=speed, default=600.0, help="seconds of the data per second, or max (default 600)")
    made.add_argument("--position", type=Path, metavar="FILE", help="remembers how far it came")
    return made


def whole(written: str) -> int:
    """A number of days."""
    if int(written) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(written)


def speed(written: str) -> float | None:
    """A speed, None for max."""
    if written == "max":
        return None
    if not 0 < float(written) < math.inf:
        raise argparse.ArgumentTypeError("a number above 0, or max")
    return float(written)


if __name__ == "__main__":
    main()
