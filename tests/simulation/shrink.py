"""Shrinks a script that fails to the shortest one that still does, and prints it as a test."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from tests.simulation.instances.script import Script as InstancesScript
from tests.simulation.script import Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.instances.script import Step as InstancesStep
    from tests.simulation.script import Step

S = TypeVar("S", Script, InstancesScript)
MOST_RUNS = 400


def shrunk(script: S, fails: Callable[[S], bool], most: int = MOST_RUNS) -> S:
    """Return a script that `fails` and from which no single step can be removed, after this many runs at most."""
    left = most

    def still_fails(smaller: S) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(smaller)

    size = len(script.steps)
    while size:
        script, is_smaller = _without(script, max(1, size // 2), still_fails)
        size = size // 2 if size > 1 else int(is_smaller and left > 0)
    for name, value in script.SIMPLEST:
        simpler = replace(script, **{name: value})  # type: ignore[arg-type]
        if simpler != script and still_fails(simpler):
            script = simpler
    return script


def _without(script: S, size: int, fails: Callable[[S], bool]) -> tuple[S, bool]:
    """Remove runs of so many steps where the rest still fails; return whether there were any."""
    at, is_smaller = 0, False
    while at < len(script.steps):
        smaller = replace(script, steps=script.steps[:at] + script.steps[at + size :])
        if fails(smaller):
            script, is_smaller = smaller, True
        else:
            at += size
    return script, is_smaller


def as_test(script: Script | InstancesScript, found: list[str]) -> str:
    """Return the source of a test of this script."""
    steps = "\n".join(f"            {_source(step)}," for step in script.steps)
    others = [
        f"        {one.name}={getattr(script, one.name)!r},\n"
        for one in fields(script)
        if one.name not in {"seed", "steps"} and getattr(script, one.name) != one.default
    ]
    return (
        f"{_imports(script)}def test_seed_{script.seed}() -> None:\n"
        f"    # {found[0]}\n"
        f"    script = Script(\n        {script.seed},\n        (\n{steps}\n        ),\n{''.join(others)}    )\n"
        f"    assert not problems(script, run(script))\n"
    )


def _imports(script: Script | InstancesScript) -> str:
    package = type(script).__module__.rpartition(".")[0]
    names = sorted({type(one).__name__ for one in (script, *script.steps)})
    return (
        f"from {package}.ledgers import problems\n"
        f"from {package}.script import {', '.join(names)}\n"
        f"from {package}.world import run\n\n\n"
    )


def _source(step: Step | InstancesStep) -> str:
    """Return a step as a call, without the values that are defaults."""
    return f"{type(step).__name__}({', '.join(_arguments(step))})"


def _arguments(step: Step | InstancesStep) -> Iterator[str]:
    for one in fields(step):
        value = getattr(step, one.name)
        if value != one.default:
            yield f"{one.name}={value!r}"
