"""The windows that changed rules may concern, a slice at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from contracts.records.alerts import rule_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from contracts.records.alerts import Rules
    from services.derive.present_states import PresentStates, Window

T = TypeVar("T")

SLICE = 2_000
"""How many keys a slice visits: new snapshots wait for it."""


def concerned(
    states: PresentStates, active: Iterable[Window], rules: Rules, names: Collection[str] | None
) -> Iterator[list[Window]]:
    """Yield the windows that rules of these names may concern, in slices; without names, those of all rules.

    First come the windows that have alerts of them, then those of the keys that they name, then those of all keys that
    their patterns match.
    """
    yield from _slices(active)
    rows = [rules.get(name) for name in (rules.names() if names is None else names)]
    found = [rule_of(row) for row in rows if row is not None]
    exact = sorted({one.keys for one in found if not one.is_pattern})
    patterns = [one.applies_to for one in found if one.is_pattern]
    for keys in _slices(exact):
        yield [window for key in keys for window in states.of_key(key)]
    position: bytes | None = None
    while patterns:
        page = states.page(position, SLICE, lambda key: any(applies_to(key) for applies_to in patterns))
        yield page.windows
        if page.position is None:
            return
        position = page.position


def everything(states: PresentStates) -> Iterator[list[Window]]:
    """Yield all windows in slices."""
    position: bytes | None = None
    while True:
        page = states.page(position, SLICE, lambda _: True)
        yield page.windows
        if page.position is None:
            return
        position = page.position


def _slices(found: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(found)
    while some := list(islice(rest, SLICE)):
        yield some
