"""The graph of needs: which enrichment waits for which."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from contracts.errors import DeclarationError
from contracts.model.enrichment import Enrichment, Need
from contracts.model.state import State, annotations, slots
from contracts.types.columns import without_none


def ordered(state: type[State], declared: tuple[Enrichment, ...]) -> tuple[Enrichment, ...]:
    """The enrichments with each after all that it needs.

    Raises DeclarationError for a need that nothing meets, a slot with no or two writers, a type that differs, a cycle,
    and a need whose last digits depend on the order of events.
    (That of an enrichment that reads its own result is bounded where it is declared.)
    """
    by_slot = _by_slot(state, declared)
    for enrichment in declared:
        for need in enrichment.needs:
            _check_need(state, enrichment, need)
    graph = {
        enrichment.name: [need.name for need in enrichment.needs if need.name in by_slot.keys() - {enrichment.name}]
        for enrichment in declared
    }
    try:
        return tuple(by_slot[name] for name in TopologicalSorter(graph).static_order())
    except CycleError as cycle:
        path = " → ".join(reversed(cycle.args[1]))
        raise DeclarationError(path, "need each other in a circle", "Take one of these needs away") from cycle


def steps(enrichments: Iterable[Enrichment]) -> dict[str, int]:
    """Return the step of each of some ordered enrichments, from 1: one more than the last of those that it needs."""
    found: dict[str, int] = {}
    for enrichment in enrichments:
        found[enrichment.name] = 1 + max((found.get(need.name, 0) for need in enrichment.needs), default=0)
    return found


def _by_slot(state: type[State], declared: tuple[Enrichment, ...]) -> dict[str, Enrichment]:
    by_slot: dict[str, Enrichment] = {}
    open_slots = slots(state)
    for enrichment in declared:
        if enrichment.name in by_slot:
            raise DeclarationError(
                enrichment.name, "two enrichments give this slot", "Rename one function and its slot"
            )
        slot = f"{enrichment.name}: Annotated[{enrichment.result.__name__} | None, Enriched()]"
        if enrichment.name not in open_slots:
            problem = f"{state.__name__} has no slot of this name"
            raise DeclarationError(enrichment.name, problem, f"Write `{slot}` in {state.__name__}")
        if without_none(open_slots[enrichment.name])[0] is not enrichment.result:
            problem = f"the enrichment gives {enrichment.result.__name__}"
            raise DeclarationError(f"{state.__name__}.{enrichment.name}", problem, f"Write `{slot}`")
        by_slot[enrichment.name] = enrichment
    if unwritten := sorted(open_slots.keys() - by_slot.keys()):
        raise DeclarationError(
            f"{state.__name__}.{unwritten[0]}",
            "no enrichment writes this slot",
            f"Declare `async def {unwritten[0]}(api: Api, …)` with @enrichment, and list it in the Application",
        )
    return by_slot


def _check_need(state: type[State], enrichment: Enrichment, need: Need) -> None:
    declared = annotations(state)
    fields: dict[str, Any] = {name: kind for name, (_, kind) in declared.items()}
    where = f"{enrichment.name}({need.name})"
    if need.name not in fields:
        known = ", ".join(sorted(fields))
        raise DeclarationError(where, f"{state.__name__} has no such field", f"Name one of these: {known}")
    expected, _ = without_none(fields[need.name])
    if expected != need.annotation:
        spelled = getattr(expected, "__name__", expected)
        raise DeclarationError(where, "differs from the state's type", f"Write `{need.name}: {spelled}`")
    reducer = declared[need.name][0]
    if reducer is not None and reducer.depends_on_order and expected is not int and not need.near:
        _refuse_unrounded(where, need, type(reducer).__name__)


def _refuse_unrounded(where: str, need: Need, reducer: str) -> None:
    """Raise DeclarationError for an unrounded float: after a crash its last digits may differ, which repeats calls."""
    if need.annotation is float:
        kind = f"Annotated[float, Quantize(0.01)]{' | None' if need.optional else ''}"
        write = f"Write `{need.name}: {kind}`, with the step that matters to the API"
    else:
        write = "Need another field, such as one of Histogram or Max"
    raise DeclarationError(where, f"the last digits of {reducer} depend on the order of events", write)
