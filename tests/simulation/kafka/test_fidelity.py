"""The model broker and a real one, used by the same scripts through the same protocols, return the same."""

from __future__ import annotations

import uuid
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from tests.simulation.kafka.scripts import abort_all, require_steps, run_steps, scripts, with_ends
from tests.simulation.kafka.worlds import model_world, real_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.services.tools.broker.embedded import EmbeddedBroker
    from tests.simulation.kafka.operations import Operation

EXAMPLES, MANY = 6, 200
prefixes = (f"m{uuid.uuid4().hex[:8]}.{number}." for number in count())


def modelled(script: Sequence[Operation], prefix: str) -> list[object]:
    """Return what the steps of a script return with a model."""
    with model_world(prefix) as world:
        return run_steps(with_ends(script), world)


def require_fidelity(script: Sequence[Operation], bootstrap: str) -> None:
    """Require that the steps of a script return with a real broker what they return with a model."""
    prefix = next(prefixes)
    expected = modelled(script, prefix)
    with real_world(prefix, bootstrap) as world:
        try:
            require_steps(with_ends(script), expected, world)
        finally:
            abort_all(world)


@pytest.mark.kafka
@pytest.mark.slow
@settings(max_examples=EXAMPLES, derandomize=True)
@given(script=scripts())
def test_a_script_returns_the_same_with_a_real_broker(broker: EmbeddedBroker, script: Sequence[Operation]) -> None:
    require_fidelity(script, broker.bootstrap)


@pytest.mark.kafka
@pytest.mark.full
@settings(max_examples=MANY)
@given(script=scripts())
def test_many_scripts_return_the_same_with_a_real_broker(broker: EmbeddedBroker, script: Sequence[Operation]) -> None:
    require_fidelity(script, broker.bootstrap)


@settings(max_examples=100)
@given(script=scripts())
def test_a_script_returns_the_same_each_time(script: Sequence[Operation]) -> None:
    assert modelled(script, "m.") == modelled(script, "m.")
