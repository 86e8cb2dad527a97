"""The lines of `stateloop rebuild` for a suite; tests/e2e/test_rebuild.py runs it on a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import MagicMock, Mock

import pytest

from services.tools.cli import rebuild
from services.tools.cli.__main__ import main
from services.tools.cli.rebuild import ApplicationRebuild
from spark_app.errors import ActivationConflictError
from spark_app.lifecycle.errors import NoGenerationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contracts import Application


class FakeRebuild:
    """The rebuild of an application of a suite, which may be refused, or fail to switch."""

    refused = ""
    failing = ""

    def __init__(self, _console: object, _spark: object, application: Application, *_: object) -> None:
        self.name = application.name

    def prepare(self) -> bool:
        return self.name != self.refused

    def switch(self) -> None:
        if self.name == self.failing:
            raise ActivationConflictError(f"checkpoint/{self.name}")


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_APPLICATION", "tests.suites:suite")
    for name in ("require_broker", "spark_session"):
        monkeypatch.setattr(rebuild, name, MagicMock())
    monkeypatch.setattr(rebuild, "ApplicationRebuild", FakeRebuild)


def test_the_line_after_a_switch_of_all_names_no_application(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rebuild"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("Replace the workers by those of this release first")


def test_a_switch_that_fails_leaves_the_next_steps_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --application, a second --rollback would bring the new generation of the first one back."""
    monkeypatch.setattr(FakeRebuild, "failing", "newest")
    assert main(["rebuild", "--rollback"]) == 1
    printed = capsys.readouterr()
    left, steps = printed.out.splitlines()
    assert "Not switched: newest, bills." in left
    assert "again with --application newest, and with --application bills: this leaves totals as it is now" in left
    assert steps.startswith("Replace the workers by those of that release first")
    assert "activated a generation of checkpoint/newest" in printed.err


def test_an_application_that_is_refused_is_named_after_the_switch_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeRebuild, "refused", "bills")
    assert main(["rebuild"]) == 1
    left, _ = capsys.readouterr().out.splitlines()
    assert "Not switched: bills." in left


def test_there_is_no_next_step_when_the_first_switch_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeRebuild, "failing", "totals")
    assert main(["rebuild"]) == 1
    assert capsys.readouterr().out == ""


def test_a_group_has_the_value_of_the_setting_of_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It adds to the default groups: workers that run under those would read on."""

    def activate(_generation: str, _now_ms: int, grow: Callable[[Callable[[], None]], None]) -> tuple[Mock, Mock]:
        grow(lambda: None)
        return Mock(), Mock()

    growth = Mock(groups=["totals-enrichment", "totals-derive"])
    monkeypatch.setattr(rebuild, "PartitionGrowth", Mock(return_value=growth))
    monkeypatch.setattr(rebuild, "Rebuild", Mock(return_value=Mock(activate=activate)))
    monkeypatch.setattr(rebuild, "ApplicationRebuild", ApplicationRebuild)
    monkeypatch.setattr(ApplicationRebuild, "build", lambda _: True)
    groups = ["--enrichment-group", "callers", "--derive-group", "derivers"]
    assert main(["rebuild", "--application", "totals", "--partitions", "4", *groups]) == 0
    ((waited_for, _, _, derive_group), _) = growth.run.call_args
    assert waited_for == [*growth.groups, "callers-totals", "derivers-totals"]
    assert derive_group == "derivers-totals"


def test_a_rollback_names_the_generation_before_it_switches_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --dry-run it does no more than that."""
    found = Mock(former=Mock(side_effect=[".", NoGenerationError("checkpoint/newest")]))
    monkeypatch.setattr(rebuild, "PartitionGrowth", Mock())
    monkeypatch.setattr(rebuild, "Rebuild", Mock(return_value=found))
    monkeypatch.setattr(rebuild, "ApplicationRebuild", ApplicationRebuild)
    assert main(["rebuild", "--rollback", "--dry-run", "--application", "totals"]) == 0
    assert capsys.readouterr().out == "totals goes back to the first one.\n"
    assert main(["rebuild", "--rollback"]) == 1
    assert "checkpoint/newest" in capsys.readouterr().err
    found.roll_back.assert_not_called()
