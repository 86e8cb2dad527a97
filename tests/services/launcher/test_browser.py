from __future__ import annotations

import pytest

from services.launcher.browser import browser, browsing


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
def test_page_is_opened_where_somebody_sees_it(environ: dict[str, str], platform: str, *, opened: bool) -> None:
    assert browsing(environ, wanted=True, terminal=True, platform=platform) is opened


@pytest.mark.parametrize(("wanted", "terminal"), [(False, True), (True, False)])
def test_page_is_not_opened_unasked(*, wanted: bool, terminal: bool) -> None:
    assert not browsing({"DISPLAY": ":0"}, wanted=wanted, terminal=terminal, platform="linux")


def test_unwanted_browser_does_nothing() -> None:
    assert browser(wanted=False)("http://127.0.0.1:1") is None
