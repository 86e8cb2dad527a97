"""Does what an operator does with a job, with Stateloop and Flink: `python -m bench.lifecycle`.

Events of 1,000 devices come at a steady rate meanwhile. For each step it measures how long the step takes until the
new job publishes, and the longest time without a snapshot; and it checks whether the states have their past.
"""

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import orjson
from rich.console import Console
from rich.table import Table

from bench.__main__ import FOLDER, INTERRUPTED, interrupt
from bench.harness import topics
from bench.harness.background import Background
from bench.harness.broker import broker
from bench.harness.errors import BenchError
from bench.harness.figures import Figures
from bench.harness.load import Fleet, Sent, steady
from bench.harness.plan import Site
from bench.lifecycle.engine import Engine
from bench.lifecycle.errors import NoOutputError
from bench.lifecycle.flink import Flink
from bench.lifecycle.stateloop import Stateloop
from bench.lifecycle.timeline import Published, decode, exact, gap_s, lasts, past, share
from bench.peers.build import build

RATE, DEVICES = 500, 1_000
RESULTS = FOLDER / "lifecycle.jsonl"
STEPS = ("savepoint", "change", "roll_back", "rescale")
ENGINES: dict[str, Callable[[Site], Engine]] = {"stateloop": Stateloop, "flink": Flink}
LOOK_S, PATIENCE_S = 0.05, 300.0
FRESH = 50
"""So many snapshots more, and a job publishes again."""


class Lifecycle:
    """All steps with one engine, on events of its own."""

    def __init__(self, site: Site, pause_s: float, console: Console) -> None:
        self._site, self._pause_s, self._console = site, pause_s, console
        self._spans = dict[str, tuple[float, float]]()

    def measure(self, name: str) -> dict[str, Figures | str]:
        """The figures of each step. Raises RunFailedError."""
        topics.renew(self._site.boot, ("events", "feedback", "snapshots", "dead_letters"))
        refusal = ""
        with Background(steady, self._site.boot, RATE, Fleet("d", DEVICES)) as load:
            engine = ENGINES[name](self._site)
            try:
                with topics.Counter(self._site.boot, "snapshots") as counter:
                    self._await(engine, counter, 0)
                    time.sleep(self._pause_s)
                    for step in STEPS:
                        self._step(step, getattr(engine, step), engine, counter)
                    sent = load.finish()
                    self._settle(counter)
                if isinstance(engine, Flink):
                    refusal = engine.refusal()
            finally:
                engine.stop()
        found = self._figures(sent, decode(topics.records(self._site.boot, "snapshots")))
        return found | ({"another type": refusal} if refusal else {})

    def _step(self, step: str, do: Callable[[], None], engine: Engine, counter: topics.Counter) -> None:
        begin = time.time()
        do()
        self._await(engine, counter, counter.count())
        self._spans[step] = begin, time.time()
        self._console.print(f"{engine.name}: {step} took {time.time() - begin:.1f} s")
        time.sleep(self._pause_s)

    def _await(self, engine: Engine, counter: topics.Counter, before: int) -> None:
        """Wait until it publishes. Raises NoOutputError."""
        deadline = time.monotonic() + PATIENCE_S
        while counter.count() < before + FRESH:
            if time.monotonic() > deadline:
                raise NoOutputError(engine.name, PATIENCE_S)
            time.sleep(LOOK_S)

    def _settle(self, counter: topics.Counter) -> None:
        count, since = counter.count(), time.monotonic()
        while time.monotonic() - since < self._pause_s:
            time.sleep(LOOK_S)
            if (now := counter.count()) > count:
                count, since = now, time.monotonic()

    def _figures(self, sent: list[Sent], published: list[Published]) -> dict[str, Figures | str]:
        found = dict[str, Figures | str]()
        for step, (begin, end) in self._spans.items():
            found[step] = {"seconds": end - begin, "gap_s": gap_s(published, begin, end)}
        begin, until = self._spans["change"][0], self._spans["roll_back"][0]
        least, states = past(sent, begin), lasts(published, "readings", until)
        found["after the change"] = {
            "renamed has its past": share(states, "readings", {name: one.events for name, one in least.items()}),
            "added has its past": share(states, "t_max", {name: one.largest for name, one in least.items()}),
        }
        found["at the end"] = {"counts exact": exact(lasts(published, "events", float("inf")), "events", sent)}
        return found


def show(results: dict[str, dict[str, Figures | str]], console: Console) -> None:
    """Print a row for each figure, a column for each engine."""
    drawn = Table("", *results)
    rows = {(step, name) for one in results.values() for step, found in one.items() for name in _named(found)}
    order = list(dict.fromkeys(step for one in results.values() for step in one))
    for step, name in sorted(rows, key=lambda row: (order.index(row[0]), row[1])):
        cells = (_named(one.get(step, {})).get(name, "") for one in results.values())
        drawn.add_row(f"{step}: {name}" if name else step, *cells)
    console.print(drawn)


def _named(found: Figures | str) -> dict[str, str]:
    return {"": found} if isinstance(found, str) else {name: f"{value:.2f}" for name, value in found.items()}


def main(given: Sequence[str]) -> int:
    """Run it: 0; 1 after an error, which is printed in one line."""
    parser = argparse.ArgumentParser(prog="python -m bench.lifecycle", description=__doc__)
    parser.add_argument("--jobs", nargs="+", choices=ENGINES, default=list(ENGINES), help="only these")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long a job runs between two steps")
    options, console = parser.parse_args(given), Console(highlight=False, soft_wrap=True)
    results = dict[str, dict[str, Figures | str]]()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        build("flink", console.print)
        shutil.rmtree(FOLDER / "run", ignore_errors=True)
        with broker(FOLDER, sys.executable) as site:
            for name in options.jobs:
                results[name] = Lifecycle(site, options.seconds, console).measure(name)
                with RESULTS.open("ab") as file:
                    file.write(orjson.dumps({"at": datetime.now(UTC), "job": name} | results[name]) + b"\n")
    except BenchError as error:
        print(f"stateloop bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        shutil.rmtree(FOLDER / "run", ignore_errors=True)
    show(results, console)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
