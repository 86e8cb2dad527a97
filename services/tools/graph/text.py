"""The graph as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.tools.graph.levels import steps
from services.tools.graph.notes import limit, notes, policies

if TYPE_CHECKING:
    from contracts import Application, Enrichment


def text(application: Application) -> str:
    """The enrichments step by step with what they need, and how their APIs are called."""
    width = max((len(one.name) for one in application.enrichments), default=0)
    lines = [f"{application.name}: {len(application.enrichments)} enrichments in {len(steps(application))} steps"]
    for number, step in enumerate(steps(application), start=1):
        lines += ["", f"step {number}"]
        for last, one in ((one is step[-1], one) for one in step):
            lines += _branch(one, width, last=last)
    lines += ["", *(f"{name}: {description}" for name, description in policies(application).items())]
    if description := limit(application):
        lines.append(f"budget: {description}")
    return "\n".join(lines)


def _branch(one: Enrichment, width: int, *, last: bool) -> list[str]:
    needs = ", ".join(f"[{need.name}]" if need.optional else need.name for need in one.needs)
    first = f"{'└' if last else '├'}─ {one.name:<{width}}  ← {needs}  ({one.api} → {one.result.__name__})"
    return [first, *(f"{' ' if last else '│'}  {'':<{width}}    {note}" for note in notes(one))]
