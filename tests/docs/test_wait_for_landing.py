"""The example of docs/how-to/query-states.md, and the commands that the page shows."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from services.tools.cli.__main__ import command_first
from services.tools.cli.app import create_app
from tests.docs.wait_for_landing import wait_for_landing
from tests.services.client.fake_service import entry, problem
from tests.services.client.streaming import Streaming, message

KEY = "2013-01-01/UA/1545/EWR-IAH"
PAGE = (Path(__file__).parents[2] / "docs/how-to/query-states.md").read_text(encoding="utf-8")
COMMANDS_OF_PAGE = {"get", "coverage", "watch", "keys", "states"}
COMMANDS = [line.split("  #")[0] for line in re.findall(r"^    stateloop (.+)$", PAGE, re.MULTILINE)]


def flying(version: int, **fields: Any) -> dict[str, Any]:
    return {**entry(KEY, version, **fields), "role": "owner", "instance": "q1"}


async def test_the_example_waits_until_the_flight_has_landed(capsys: pytest.CaptureFixture[str]) -> None:
    async with Streaming().serving() as service:
        assert await wait_for_landing(service.url, KEY) == f"{KEY} is unknown"
        service.put({"state": "flights", "key": KEY, **problem("expired", 410)})
        assert await wait_for_landing(service.url, KEY) == f"{KEY} has expired"
        service.put(entry(KEY, 1, status="departed"))
        waiting = asyncio.create_task(wait_for_landing(service.url, KEY))
        stream = await service.connection(0)
        stream.send(message(flying(2, status="departed")), message(flying(3, status="landed", delay=7)))
        assert await waiting == f"{KEY} has landed, 7 min late"
    assert f"{KEY} is departed, as of 0:00:01.234000 ago" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_are_understood(command: str) -> None:
    piped, *_ = command.split(" | ")
    arguments = command_first(shlex.split(piped))
    create_app().parse_args(arguments)
    assert arguments[0] in COMMANDS_OF_PAGE


def test_the_page_shows_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == COMMANDS_OF_PAGE
