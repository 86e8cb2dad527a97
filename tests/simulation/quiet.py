"""The times of a script at which a loop has done everything: nothing was wrong for long, and nothing came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.script import ENDS_S, Fault, Sent

if TYPE_CHECKING:
    from tests.simulation.script import Script

QUIET_S = 120.0
"""The time after the last fault in which a loop answers everything."""
ANSWERED_S = 60.0
"""The time after the last event in which a loop without a fault does, unless it makes one call after the other."""
PATIENCE_S = 120.0
"""The time for which the job waits for the acknowledgement of a write: `job.PATIENCE`."""
JUST_BEFORE_S = 0.001
DELAYS = frozenset({"away", "cut", "freeze", "suspended", "leaderless", "unacknowledged"})
"""The faults of the job and of the broker during which the job cannot complete a write."""


def quiet_times(script: Script) -> list[float]:
    """Return the end, and the times before it that are just before a step and quiet.

    What such a step begins may hide what was lost: another worker reads again, or an event asks again. From a growth on
    there is only the end: faults delay it, and so do the operators.
    """
    answered_s = answered_within_s(script)
    found, busy_until = [], answered_s
    for step in sorted(script.steps, key=lambda step: step.at):
        if step.at - JUST_BEFORE_S > busy_until:
            found.append(step.at - JUST_BEFORE_S)
        is_growth = isinstance(step, Fault) and step.kind == "growth"
        ends = recovers_at(script, step) if isinstance(step, Fault) else step.at + answered_s
        busy_until = max(busy_until, ENDS_S if is_growth else ends)
    return [*found, ENDS_S]


def recovers_at(script: Script, fault: Fault) -> float:
    """Return the time at which a loop answers everything again after a fault.

    The job waits for each lost acknowledgement, for one after the other. It loses none while it cannot write.
    """
    begins, ends = _span(script, fault)
    if _loses_acknowledgements(fault):
        others = [other for other in script.faults if other is not fault and _delays_writes(other)]
        for since, until in sorted(_span(script, other) for other in others):
            if since < ends:
                ends += max(0.0, until - max(since, begins))
    return ends + QUIET_S


def _span(script: Script, fault: Fault) -> tuple[float, float]:
    """Return when a fault begins and ends. The job notices a lost acknowledgement from its next write on."""
    if not _loses_acknowledgements(fault):
        return fault.at, fault.at + fault.lasts
    writes = [step.at for step in script.steps if isinstance(step, Sent) and step.at >= fault.at]
    begins = min(writes, default=fault.at)
    return begins, begins + fault.amount * PATIENCE_S


def _loses_acknowledgements(fault: Fault) -> bool:
    return (fault.part, fault.kind) == ("job", "unacknowledged")


def _delays_writes(fault: Fault) -> bool:
    return fault.part in {"job", "broker"} and fault.kind in DELAYS


def answered_within_s(script: Script) -> float:
    """Return the time after an event in which a loop without a fault answers everything."""
    return QUIET_S if script.in_flight == 1 else ANSWERED_S
