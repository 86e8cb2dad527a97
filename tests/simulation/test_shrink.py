"""A script that fails is shrunk to what the failure needs, and its source gives it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation import ledgers, world
from tests.simulation.generate import script
from tests.simulation.instances import script as instances
from tests.simulation.script import Fault, Script, Sent
from tests.simulation.shrink import as_test, shrunk
from tests.simulation.verdict import instances_verdict

if TYPE_CHECKING:
    import pytest

SENT, FAULT = Sent(5.0, "d9", "needed"), Fault(7.0, "crash", "worker-0", 3.0)


def fails(candidate: Script) -> bool:
    """Fail as a script that needs two steps and two workers."""
    return {SENT, FAULT} <= set(candidate.steps) and candidate.workers > 1


def test_what_the_failure_does_not_need_is_removed() -> None:
    others = script(3).steps
    large = Script(3, (*others[:7], SENT, *others[7:], FAULT), workers=3, partitions=4, sinks=2)
    assert fails(large)
    assert len(others) > 7
    assert shrunk(large, fails) == Script(3, (SENT, FAULT), workers=3, partitions=1)


def test_a_shrunk_script_has_the_partition_that_has_no_leader() -> None:
    written, leaderless = instances.Written(5.0, "k0"), instances.Fault(8.0, "leaderless", "topic", 4.0, amount=5.0)
    large = instances.Script(1, (written, leaderless), partitions=6)
    small = shrunk(large, lambda candidate: leaderless in candidate.steps and not instances_verdict(candidate))
    assert small == instances.Script(1, (leaderless,), partitions=1)


def test_the_source_of_a_test_has_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Script(3, (SENT, FAULT), workers=2)
    found: list[Script] = []
    monkeypatch.setattr(world, "run", found.append)
    monkeypatch.setattr(ledgers, "problems", lambda *_: [])
    exec(f"{as_test(small, ['it fails'])}\ntest_seed_3()", {})  # noqa: S102  # the source is what is tested
    assert found == [small]
