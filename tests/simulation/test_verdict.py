"""A run that never ends fails: else one endless loop would keep all other scripts from being run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation import verdict
from tests.simulation.script import Script

if TYPE_CHECKING:
    import pytest


def test_an_endless_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_: Script) -> None:
        while True:
            pass

    def problems(_: Script, __: None) -> list[str]:
        return []

    monkeypatch.setattr(verdict, "MOST_S", 0.2)
    (found,) = verdict._judged(endless, problems)(Script(1, ()))  # noqa: SLF001
    assert "the run does not end in 0.2 seconds" in found
