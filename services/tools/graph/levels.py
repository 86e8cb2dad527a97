"""The steps of a graph: what can run at once, and what only after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contracts import Application, Enrichment


def levels(application: Application) -> dict[str, int]:
    """The step of each enrichment, from 1: one more than the last of those that it needs."""
    level_of: dict[str, int] = {}
    for enrichment in application.enrichments:
        level_of[enrichment.name] = 1 + max((level_of.get(need.name, 0) for need in enrichment.needs), default=0)
    return level_of


def steps(application: Application) -> list[list[Enrichment]]:
    """The enrichments of each step, in the order of the state's slots."""
    level_of, slots = levels(application), list(application.slots)
    by_slot = sorted(application.enrichments, key=lambda enrichment: slots.index(enrichment.name))
    return [
        [enrichment for enrichment in by_slot if level_of[enrichment.name] == level]
        for level in sorted(set(level_of.values()))
    ]
