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
    """Return the time at which a loop without another fault answers everything again.

    The job waits for each acknowledgement of a write that does not arrive, from its next write on.
    """
    if (fault.part, fault.kind) != ("job", "unacknowledged"):
        return fault.at + fault.lasts + QUIET_S
    writes = [step.at for step in script.steps if isinstance(step, Sent) and step.at >= fault.at]
    return min(writes, default=fault.at) + fault.amount * PATIENCE_S + QUIET_S


def answered_within_s(script: Script) -> float:
    """Return the time after an event in which a loop without a fault answers everything."""
    return QUIET_S if script.in_flight == 1 else ANSWERED_S
