"""The graph as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.model.graph import steps
from services.tools.graph.notes import limit, notes, policies

if TYPE_CHECKING:
    from contracts import Application, Enrichment


def text(application: Application) -> str:
    """The enrichments step by step with what they need, and how their APIs are called."""
    width = max((len(enrichment.name) for enrichment in application.enrichments), default=0)
    listed = _steps(application)
    lines = [f"{application.name}: {len(application.enrichments)} enrichments in {len(listed)} steps"]
    for number, step in enumerate(listed, start=1):
        lines += ["", f"step {number}"]
        for last, enrichment in ((enrichment is step[-1], enrichment) for enrichment in step):
            lines += _branch(enrichment, width, last=last)
    lines += ["", *(f"{name}: {description}" for name, description in policies(application).items())]
    if description := limit(application):
        lines.append(f"budget: {description}")
    return "\n".join(lines)


def _steps(application: Application) -> list[list[Enrichment]]:
    """Return the enrichments of each step, in the order of the state's slots."""
    step_of, by_name = steps(application.enrichments), application.by_name
    by_slot = [by_name[name] for name in application.slots]
    return [[one for one in by_slot if step_of[one.name] == step] for step in sorted(set(step_of.values()))]


def _branch(enrichment: Enrichment, width: int, *, last: bool) -> list[str]:
    needs = ", ".join(f"[{need.name}]" if need.optional else need.name for need in enrichment.needs)
    call = f"{enrichment.api} → {enrichment.result.__name__}"
    first = f"{'└' if last else '├'}─ {enrichment.name:<{width}}  ← {needs}  ({call})"
    return [first, *(f"{' ' if last else '│'}  {'':<{width}}    {note}" for note in notes(enrichment))]
