"""The header by which instances tell each other by how many partitions they place the keys of each state.

While partitions are added, instances start again with the new number, one after the other. Two that differ do not
complete each other: a page, or a watch of many keys, would lack the keys of some partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.model.named_state import NamedState

HEADER = "Stateloop-Partitions"


def layout_header(states: Mapping[str, NamedState]) -> tuple[str, str]:
    """Return the header of a request to another instance. Names of states have no spaces, and no equals signs."""
    return HEADER, " ".join(f"{name}={state.partitions}" for name, state in sorted(states.items()))


def require_same_layout(headers: Mapping[str, str], states: Mapping[str, NamedState]) -> None:
    """Raise ProblemError (421) if the request is of an instance that places keys by another number of partitions.

    That of an earlier release has no header, and clients send none. States that only one of the two has do not matter.
    """
    for text in headers.get(HEADER, "").split():
        name, _, number = text.partition("=")
        if name in states and number != str(states[name].partitions):
            detail = f"This instance places the keys of {name} by {states[name].partitions} partitions, not by {number}"
            raise ProblemError(Problem("elsewhere", detail))
