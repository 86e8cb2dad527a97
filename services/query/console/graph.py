"""The graph of enrichments, with the outcomes of their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.api.loop import EnrichmentNode, GraphResponse
from contracts.metrics import worker
from contracts.model.graph import steps
from services.query.console.figures import breaker

if TYPE_CHECKING:
    from contracts import Application, Enrichment
    from services.query.console.observation import Span


def graph(application: Application, span: Span) -> GraphResponse:
    """Return the enrichments with their counts; rates are those of the span."""
    names, step_of = set(application.by_name), steps(application.enrichments)
    totals = span.now.samples.sums(worker.ANSWERS, "enrichment", "status")
    rates = span.rate(worker.ANSWERS, "enrichment", "status")
    calls = span.rate(worker.CALLS, "enrichment")
    return GraphResponse(
        application=application.name,
        nodes=tuple(
            EnrichmentNode(
                name=enrichment.name,
                step=step_of[enrichment.name],
                api=enrichment.api,
                gives=enrichment.result.__name__,
                needs=tuple(need.name for need in enrichment.needs),
                optional=tuple(need.name for need in enrichment.needs if need.optional),
                notes=_notes(enrichment),
                totals={status: round(count) for (name, status), count in totals.items() if name == enrichment.name},
                rates={status: rate for (name, status), rate in rates.items() if name == enrichment.name},
                calls=calls.get((enrichment.name,)),
                breaker=breaker(enrichment.api, span.now),
            )
            for enrichment in application.enrichments
        ),
        fields=tuple(
            dict.fromkeys(
                need.name
                for enrichment in application.enrichments
                for need in enrichment.needs
                if need.name not in names
            )
        ),
    )


def without_counts(found: GraphResponse) -> GraphResponse:
    """Return the graph without counts, which are totals over all keys."""
    hidden: dict[str, object] = {"totals": {}, "rates": {}, "calls": None}
    return found.model_copy(update={"nodes": tuple(node.model_copy(update=hidden) for node in found.nodes)})


def _notes(one: Enrichment) -> tuple[str, ...]:
    notes = ["conditional"] if one.when else []
    notes += [f"up to {one.rounds} rounds"] if one.rounds else []
    notes += [f"stale after {one.stale_after.total_seconds():g} s"] if one.stale_after else []
    return (*notes, *([f"at most every {one.at_most_every.total_seconds():g} s"] if one.at_most_every else []))
