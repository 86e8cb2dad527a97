"""The steps of a graph: what can run at once, and what only after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contracts import Application, Enrichment


def levels(application: Application) -> dict[str, int]:
    """The step of each enrichment, from 1: one more than the last of those that it needs."""
    found: dict[str, int] = {}
    for one in application.enrichments:
        found[one.name] = 1 + max((found.get(need.name, 0) for need in one.needs), default=0)
    return found


def steps(application: Application) -> list[list[Enrichment]]:
    """The enrichments of each step, in the order of the state's slots."""
    found, slots = levels(application), list(application.slots)
    by_slot = sorted(application.enrichments, key=lambda one: slots.index(one.name))
    return [[one for one in by_slot if found[one.name] == step] for step in sorted(set(found.values()))]
