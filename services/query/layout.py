"""The header of requests between instances, with the number of partitions by which the sender places keys.

When partitions have been added, instances start again with the new number, one after the other. A page, or a watch of
many keys, that two instances with different numbers serve together would lack the keys of some partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.model.named_state import NamedState

HEADER = "Stateloop-Layout"


def layout_header(states: Mapping[str, NamedState]) -> tuple[str, str]:
    """Return the header: `topic=number` for each state, separated by spaces, which no topic's name has."""
    return HEADER, " ".join(sorted(f"{state.topic}={state.partitions}" for state in states.values()))


def require_same_layout(headers: Mapping[str, str], states: Mapping[str, NamedState]) -> None:
    """Raise ProblemError (421) if the sender uses another number of partitions of the same topic.

    For requests of instances alone: the problem names the topic of any state. Earlier releases send no header.
    """
    if HEADER not in headers:
        return
    used = {state.topic: str(state.partitions) for state in states.values()}
    for text in headers[HEADER].split():
        topic, _, number = text.partition("=")
        if used.get(topic, number) != number:
            detail = f"This instance uses {used[topic]} partitions of {topic}, not {number}"
            raise ProblemError(Problem("elsewhere", detail))
