"""Groups of a model broker and of a real one, whose members run the same scripts, return the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.kafka.instances import Start, Stop
from tests.simulation.kafka.members import (
    CommitFromOutside,
    CommittedOffsets,
    Join,
    Leave,
    Produce,
    Prove,
    Seek,
    Settle,
)
from tests.simulation.kafka.scripts import require_steps, run_steps
from tests.simulation.kafka.test_fidelity import prefixes
from tests.simulation.kafka.worlds import model_world, real_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.services.tools.broker.embedded import EmbeddedBroker
    from tests.simulation.kafka.operations import Operation

EXAMPLES, MANY = 3, 60
LENGTH = 8
BEGINNING = (Join("x"), Produce(0, 5), Produce(1, 3))
EVERYTHING = (Settle(), CommittedOffsets(), Leave("x"), Settle(), Leave("y"), Leave("z"), CommittedOffsets())


def scripts() -> st.SearchStrategy[list[Operation]]:
    """Give scripts."""
    names, partitions, some = st.sampled_from("xyz"), st.integers(0, 1), st.integers(0, 6)
    operation = st.one_of(
        st.builds(Join, names),
        st.builds(Join, names),
        st.builds(Leave, names),
        st.builds(Produce, partitions, st.integers(1, 30)),
        st.builds(Settle),
        st.builds(Seek, partitions, some),
        st.builds(Prove, partitions),
        st.builds(CommitFromOutside, some),
    )
    return st.lists(operation, min_size=1, max_size=LENGTH)


def instances() -> st.SearchStrategy[list[Operation]]:
    """Give scripts of static members."""
    names = st.sampled_from("xy")
    operation = st.one_of(st.builds(Start, names), st.builds(Start, names), st.builds(Stop, names))
    return st.lists(operation, min_size=1, max_size=LENGTH // 2).map(lambda found: [*found, Stop("x"), Stop("y")])


def require_fidelity(script: Sequence[Operation], bootstrap: str) -> None:
    """Require that the steps of a script return with a real broker what they return with a model."""
    require_same([*BEGINNING, *script, *EVERYTHING], bootstrap)


def require_same(steps: Sequence[Operation], bootstrap: str) -> None:
    """Require that steps return with a real broker what they return with a model."""
    prefix = next(prefixes)
    with model_world(prefix) as world:
        expected = run_steps(steps, world)
    with real_world(prefix, bootstrap) as world:
        require_steps(steps, expected, world)


@pytest.mark.kafka
@pytest.mark.slow
@settings(max_examples=EXAMPLES, derandomize=True)
@given(script=scripts())
def test_a_group_returns_the_same_with_a_real_broker(broker: EmbeddedBroker, script: Sequence[Operation]) -> None:
    require_fidelity(script, broker.bootstrap)


@pytest.mark.kafka
@pytest.mark.full
@settings(max_examples=MANY)
@given(script=scripts())
def test_groups_return_the_same_with_a_real_broker(broker: EmbeddedBroker, script: Sequence[Operation]) -> None:
    require_fidelity(script, broker.bootstrap)


@pytest.mark.kafka
@pytest.mark.slow
@settings(max_examples=EXAMPLES, derandomize=True)
@given(script=instances())
def test_instances_share_the_same_with_a_real_broker(broker: EmbeddedBroker, script: Sequence[Operation]) -> None:
    require_same(script, broker.bootstrap)
