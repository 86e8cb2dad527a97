"""Short descriptions of the declarations of enrichments and APIs."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

    from contracts import Application, Enrichment
    from contracts.model.condition import Condition

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1), ("ms", 0.001))


def notes(enrichment: Enrichment) -> list[str]:
    """Return the declarations of an enrichment other than its dependencies, a line each."""
    lines = [f"when {condition(enrichment.when)}"] if enrichment.when else []
    lines += [f"{name} rounded to {_step(near.step)}" for name, near in enrichment.rounding.items()]
    lines += [f"up to {enrichment.rounds} rounds"] if enrichment.rounds else []
    lines += [f"stale after {duration(enrichment.stale_after)}"] if enrichment.stale_after else []
    return lines + ([f"at most every {duration(enrichment.at_most_every)}"] if enrichment.at_most_every else [])


def policies(application: Application) -> dict[str, str]:
    """Return the description of each API's policy, by the API's name."""
    descriptions = {}
    for name in dict.fromkeys(enrichment.api for enrichment in application.enrichments):
        policy = application.apis[name]
        descriptions[name] = f"{duration(policy.timeout)} a call, up to {policy.attempts} attempts"
    return descriptions


def limit(application: Application) -> str | None:
    """The budget of a device, if there is one."""
    budget = application.budget
    return None if budget is None else f"at most {budget.requests} requests per device in {duration(budget.per)}"


def condition(when: Condition) -> str:
    """A condition as its author wrote it: the name of a function, the body of a lambda."""
    if when.name != "when":
        return when.name
    try:
        tree = ast.parse(inspect.getsource(inspect.getmodule(when.predicate) or ast))
    except (OSError, SyntaxError):
        return f"its condition on {', '.join(when.kinds)} holds"
    first = when.predicate.__code__.co_firstlineno
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == first]
    return ast.unparse(lambdas[0].body) if len(lambdas) == 1 else f"its condition on {', '.join(when.kinds)} holds"


def duration(time: timedelta) -> str:
    """A time in the largest unit that holds it without a fraction."""
    seconds = time.total_seconds()
    unit, size = next(((unit, size) for unit, size in UNITS if (seconds / size).is_integer()), UNITS[-1])
    return f"{seconds / size:g} {unit}"


def _step(step: float | timedelta) -> str:
    return f"{step:g}" if isinstance(step, int | float) else duration(step)
