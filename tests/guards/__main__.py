"""Takes the guards out one at a time: a test must fail without each. `python -m tests.guards [--only NAME …]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tests.guards.guard import guards
from tests.guards.trial import Checkout, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.guards.guard import Guard

CHECKOUTS = 2
"""The number of guards that are taken out at once, each of a copy of the tree."""


def main() -> int:
    """Try the selected guards, and return the exit status: 1 if a guard is not defended."""
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="guards whose names contain a text")
    names = parser.parse_args().only
    selected = [guard for guard in guards() if any(name in guard.name for name in names)]
    if not selected:
        parser.error(f"no guard has a name with {' or '.join(names)}")
    with _checkouts() as checkouts:
        return 0 if _pass_unchanged(checkouts[0], selected) and _are_defended(checkouts, selected) else 1


@contextmanager
def _checkouts() -> Iterator[list[Checkout]]:
    """Make the copies of the tree."""
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        yield [Checkout(Path(folder) / str(number)) for number in range(CHECKOUTS)]


def _pass_unchanged(checkout: Checkout, selected: Sequence[Guard]) -> bool:
    """Run all tests of the guards on the unchanged product, on which they must pass."""
    started = time.monotonic()
    outcome = checkout.run(sorted({test for guard in selected for test in guard.tests}))
    passed = outcome.verdict is Verdict.PASSED
    print(f"unchanged: {'passed' if passed else outcome.verdict}, {time.monotonic() - started:.0f} s", flush=True)
    print("\n".join(outcome.failures))
    return passed


def _are_defended(checkouts: Sequence[Checkout], selected: Sequence[Guard]) -> bool:
    """Take out each guard, with a line of progress, and print the table of the parts."""
    free: SimpleQueue[Checkout] = SimpleQueue()
    numbers = count(1)
    for checkout in checkouts:
        free.put(checkout)

    def tried(guard: Guard) -> Outcome:
        checkout, started = free.get(), time.monotonic()
        try:
            outcome = checkout.run_without(guard)
        finally:
            free.put(checkout)
        failed = outcome.failures[0].partition(":")[0] if outcome.failures else ""
        progress, seconds = f"{next(numbers)}/{len(selected)}", time.monotonic() - started
        print(f"{progress:>9} {outcome.verdict:9} {seconds:4.0f} s  {guard.name:64} {failed}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(checkouts)) as threads:
        outcomes = list(threads.map(tried, selected))
    lost = [(guard, found) for guard, found in zip(selected, outcomes, strict=True) if found.verdict != Verdict.FAILED]
    all_parts, lost_parts = Counter(guard.part for guard in selected), Counter(guard.part for guard, _ in lost)
    print(f"\n{'part':16}{'guards':>8}{'defended':>10}")
    for part, total in all_parts.items():
        print(f"{part:16}{total:8}{total - lost_parts[part]:10}")
    print(f"{'all':16}{len(selected):8}{len(selected) - len(lost):10}")
    for guard, found in lost:
        print(f"\n{found.verdict} {guard.name} in {guard.file}: {guard.fault}", *found.failures, sep="\n  ")
    return not lost


if __name__ == "__main__":
    sys.exit(main())
