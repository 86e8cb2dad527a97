"""The order of a bootstrap's steps for several applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rich.console import Console

from services.tools.cli.bootstrap import run
from spark_app.lifecycle.history import HistoryFile
from spark_app.lifecycle.history_writer import HistoryPosition
from spark_app.lifecycle.rebuild import RebuildPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_app.lifecycle.bootstrap import Bootstrap

PLAN = RebuildPlan([], "generation-1", is_begun=False, records=0, missing=[])


class Steps:
    """A bootstrap and its rebuild, which note their steps."""

    def __init__(self, name: str, steps: list[str], *, is_done: bool = False) -> None:
        self.name, self.is_done, self._steps = name, is_done, steps

    def write(self, report: Callable[..., object]) -> HistoryPosition:
        position = HistoryPosition(files="digest", of=1, row=7, refused=2)
        report(HistoryFile("day.jsonl", 1), position)
        self._note("write")
        return position

    def rebuild(self) -> Steps:
        return self

    def plan(self, _: int) -> RebuildPlan:
        return PLAN

    def build(self, *_: object) -> None:
        self._note("build")

    def finish(self, _: HistoryPosition) -> None:
        self._note("finish")

    def activate(self, *_: object) -> None:
        self._note("activate")

    def _note(self, step: str) -> None:
        self._steps.append(f"{step} {self.name}")


def test_a_topic_keeps_the_events_until_each_application_has_its_state() -> None:
    steps: list[str] = []
    run(Console(quiet=True), [cast("Bootstrap", Steps(name, steps)) for name in "ab"])
    each = ("write", "build", "finish", "activate")
    assert [step.split()[0] for step in steps] == [step for step in each for _ in "ab"]


def test_an_application_that_has_its_state_is_left_as_it_is() -> None:
    steps: list[str] = []
    run(Console(quiet=True), [cast("Bootstrap", Steps(name, steps, is_done=name == "a")) for name in "ab"])
    assert steps == ["write b", "build b", "finish b", "activate b"]
