from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from services.tools.broker.readiness import wait_until
from services.tools.launcher.browser import browser, browsing, opened
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PAGE = "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("environ", "platform", "opened"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({}, "darwin", True),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "somewhere"}, "linux", False),
        ({"SSH_CONNECTION": "somewhere"}, "darwin", False),
    ],
)
def test_page_is_opened_on_a_desktop(environ: dict[str, str], platform: str, *, opened: bool) -> None:
    assert browsing(environ, wanted=True, terminal=True, platform=platform) is opened


@pytest.mark.parametrize(("wanted", "terminal"), [(False, True), (True, False)])
def test_page_is_opened_only_on_request(*, wanted: bool, terminal: bool) -> None:
    assert not browsing({"DISPLAY": ":0"}, wanted=wanted, terminal=terminal, platform="linux")


def test_unwanted_browser_does_nothing() -> None:
    assert browser({}, wanted=False)(PAGE) is None


def _desktop(folder: Path, *browsers: str) -> Mapping[str, str]:
    """One with these browsers, each of which notes the page, its input and its output, and waits for a key."""
    for name in browsers:
        output = f"{folder}/{name}.output"
        descriptors = "/bin/readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2"
        script = f"#!/bin/sh\n(echo $1; {descriptors}) > {output}.new\n/bin/mv {output}.new {output}\nread -r\n"
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder), "DISPLAY": ":0", "TERM": "xterm", "BROWSER": ""}


@pytest.fixture
def piped() -> Iterator[None]:
    """This process's input is a pipe, as if a terminal, and no longer nothing, as pytest has it."""
    before, (reading, writing) = os.dup(0), os.pipe()
    os.dup2(reading, 0)
    yield
    os.dup2(before, 0)
    for descriptor in (before, reading, writing):
        os.close(descriptor)


@pytest.mark.usefixtures("piped")
def test_page_is_given_to_a_browser_without_a_terminal(tmp_path: Path) -> None:
    process = opened(PAGE, _desktop(tmp_path, "xdg-open", "www-browser"))
    assert os.getsid(process.pid) == process.pid
    output = tmp_path / "xdg-open.output"
    wait_until(output.exists, "an opened page", DEADLINE_S)
    assert output.read_text(encoding="utf-8").split() == [PAGE, "/dev/null", "/dev/null", "/dev/null"]
    assert process.wait(DEADLINE_S) == 0
    assert not (tmp_path / "www-browser.output").exists()


@pytest.mark.parametrize("name", ["www-browser", "lynx", "w3m", "links", "elinks"])
def test_browser_for_terminals_is_left_alone(tmp_path: Path, name: str) -> None:
    opened(PAGE, _desktop(tmp_path, name)).wait(DEADLINE_S)
    assert not (tmp_path / f"{name}.output").exists()


def test_the_launcher_does_not_wait_for_a_browser_given_by_name(tmp_path: Path) -> None:
    process = opened(PAGE, {**_desktop(tmp_path, "w3m"), "BROWSER": "w3m"})
    assert process.wait(DEADLINE_S) == 0
    assert (tmp_path / "w3m.output").read_text(encoding="utf-8").split()[0] == PAGE
