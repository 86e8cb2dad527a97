"""The feed reads a real query service, as the console's tests do."""

from __future__ import annotations

import asyncio
from itertools import cycle
from typing import TYPE_CHECKING

from services.tools.live.feed import Feed
from services.tools.live.view import LiveView
from tests.deadline import DEADLINE_S
from tests.services.query.console.departing import SUITE, two_at_work
from tests.services.query.console.flights import key_of
from tests.services.query.console.observations import at_work
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  # the view has no events
            await asyncio.sleep(0.02)


async def test_metrics_and_states_are_read_and_followed(tmp_path: Path) -> None:
    status, view, stage = tmp_path / "status.json", LiveView(), Stage()
    status.write_text('{"broker": "runs"}')
    stage.fly(1, 1)
    for at in (0, 2):
        stage.observe(at_work(at))
    async with stage.serving(), Feed(view, ["http://127.0.0.1:1", stage.base], "", status):
        await until(lambda: view.loop and key_of(1) in view.keys)
        assert view.error == ""
        assert view.loop["application"] == "flights"
        assert view.processes == {"broker": "runs"}
        assert view.history
        async with asyncio.timeout(DEADLINE_S):
            for version in cycle(range(1, 10)):
                stage.fly(2, version)
                if key_of(2) in view.keys:
                    break
                await asyncio.sleep(0.02)


async def test_the_loop_of_another_application_is_read() -> None:
    view, stage = LiveView(), Stage(suite=SUITE)
    for at in (0, 2):
        stage.observe(two_at_work(at, until=2))
    async with stage.serving(), Feed(view, [stage.base], "", None, "departures"):
        await until(lambda: view.loop)
        assert (view.loop["application"], view.graph["application"]) == ("departures", "departures")
    view = LiveView()
    async with stage.serving(), Feed(view, [stage.base], "", None, "nosuch"):
        await until(lambda: "The applications are: flights, departures" in view.error)
