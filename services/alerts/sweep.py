"""The windows that changed rules may concern, a slice at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from contracts.alerts.evaluation import rule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from contracts.alerts.evaluation import Rules
    from contracts.model.alerts import AlertRule
    from services.alerts.present_states import Position, PresentStates

T = TypeVar("T")

SLICE = 2_000
"""The number of windows in a slice: new snapshots wait for it."""


def concerned(
    states: PresentStates, active: Iterable[Position], rules: Rules, names: Collection[str] | None
) -> Iterator[list[Position]]:
    """Yield the windows that rules of these names may concern, in slices; without names, those of all rules.

    First come the windows that have alerts of them, then those of the keys that they name, then those of the keys that
    their patterns match.
    """
    yield from _slices(active)
    rows = [rules.get(name) for name in (rules.names() if names is None else names)]
    selected = [rule_of(row) for row in rows if row is not None]
    for keys in _slices(sorted({rule.keys for rule in selected if not rule.is_pattern})):
        yield [position for key in keys for position in states.of_key(key)]
    for prefix, patterns in _by_prefix(rule for rule in selected if rule.is_pattern):
        yield from _with_prefix(states, prefix, _matcher(patterns))


def everything(states: PresentStates) -> Iterator[list[Position]]:
    """Yield all windows in slices."""
    yield from _with_prefix(states, "", lambda _: True)


def _with_prefix(states: PresentStates, prefix: str, matches: Callable[[str], object]) -> Iterator[list[Position]]:
    page = states.page(prefix, matches, None, SLICE)
    yield page.positions
    while page.last is not None:
        page = states.page(prefix, matches, page.last, SLICE)
        yield page.positions


def _by_prefix(patterns: Iterable[AlertRule]) -> Iterator[tuple[str, list[AlertRule]]]:
    """Yield prefixes of which none begins with another, with the patterns whose keys begin with them."""
    ordered = sorted(patterns, key=lambda one: one.prefix)
    while ordered:
        prefix = ordered[0].prefix
        count = sum(rule.prefix.startswith(prefix) for rule in ordered)
        yield prefix, ordered[:count]
        del ordered[:count]


def _matcher(patterns: Collection[AlertRule]) -> Callable[[str], object]:
    """Return a function that returns whether one of these patterns matches a key."""
    matches, *others = (rule.applies_to for rule in patterns)
    return (lambda key: any(rule.applies_to(key) for rule in patterns)) if others else matches


def _slices(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    while some := list(islice(remaining, SLICE)):
        yield some
