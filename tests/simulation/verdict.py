"""Runs a script, and judges the run."""

from __future__ import annotations

import signal
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tests.simulation import ledgers, world
from tests.simulation.instances import ledgers as instances_ledgers
from tests.simulation.instances import world as instances_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

S = TypeVar("S")
L = TypeVar("L")

MOST_S = 60.0
"""The CPU time of a run, in seconds, at which it counts as endless: in a loop without end no virtual time passes."""


class EndlessRunError(KeyboardInterrupt):
    """A run does not end. As an interrupt it ends the event loop, too, and no code of the product catches it."""


def _judged(run: Callable[[S], L], problems: Callable[[S, L], list[str]]) -> Callable[[S], list[str]]:
    def verdict(script: S) -> list[str]:
        """Return what is wrong with the run of a script. An error that stops the run is a problem too."""
        try:
            with _ended_after(MOST_S):
                return problems(script, run(script))
        except (Exception, EndlessRunError) as error:  # noqa: BLE001  # whatever it is, the script has found it
            return ["".join(traceback.format_exception_only(error)).strip()]

    return verdict


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Raise EndlessRunError when the process has used so much CPU time."""

    def end(*_: object) -> None:
        raise EndlessRunError(f"the run does not end in {seconds:g} seconds of CPU time")

    former = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, former)


verdict = _judged(world.run, ledgers.problems)
instances_verdict = _judged(instances_world.run, instances_ledgers.problems)
