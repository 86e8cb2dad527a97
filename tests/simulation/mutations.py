"""Guards that are taken out: a script needs each of them, and perhaps some seeds do."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import pytest

from tests.simulation.instances.script import Script as InstancesScript
from tests.simulation.script import Script

Patch = Callable[[pytest.MonkeyPatch], None]
S = TypeVar("S", Script, InstancesScript)
MOST_SEEDS = 400


class Mutation(NamedTuple, Generic[S]):
    """What takes a guard out, a script that needs the guard, and whether some of MOST_SEEDS are known to need it."""

    patch: Patch
    script: S
    is_found_by_seeds: bool


class Mutations(Generic[S]):
    """The guards of one kind of script, by the names of the functions that take them out."""

    def __init__(self, script_of: Callable[[int], S], verdict: Callable[[S], list[str]]) -> None:
        self._script_of: Callable[[int], S] = script_of
        self._verdict: Callable[[S], list[str]] = verdict
        self._mutations: dict[str, Mutation[S]] = {}

    def __call__(self, script: S, *, is_found_by_seeds: bool = False) -> Callable[[Patch], Patch]:
        """Register the function that is decorated."""

        def register(patch: Patch) -> Patch:
            self._mutations[patch.__name__] = Mutation(patch, script, is_found_by_seeds)
            return patch

        return register

    def script_test(self) -> Callable[[str], None]:
        """Return the test that the script of each guard fails without it, for the module of the guards."""

        @pytest.mark.parametrize("name", self._mutations)
        def test(name: str) -> None:
            self._require_failure(name)

        return test

    def seed_test(self) -> Callable[[str], None]:
        """Return the test that fresh seeds find the guards which seeds are known to need."""
        names = [name for name, mutation in self._mutations.items() if mutation.is_found_by_seeds]

        @pytest.mark.full
        @pytest.mark.parametrize("name", names)
        def test(name: str) -> None:
            self._require_seed(name)

        return test

    def _require_failure(self, name: str) -> None:
        """Require that the script of a guard fails without it, and only then."""
        mutation = self._mutations[name]
        assert not self._verdict(mutation.script)
        with pytest.MonkeyPatch.context() as patch:
            mutation.patch(patch)
            assert self._verdict(mutation.script)

    def _require_seed(self, name: str) -> None:
        """Require that one of MOST_SEEDS fresh seeds fails without a guard."""
        first = secrets.randbelow(1 << 32)
        with pytest.MonkeyPatch.context() as patch:
            self._mutations[name].patch(patch)
            assert any(self._verdict(self._script_of(seed)) for seed in range(first, first + MOST_SEEDS))
