"""The files of the page: their headers, and their contents."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession

from services.query.console.page import FOLDER, charts, page
from services.query.console.routes import JARS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.query.console.stage import Stage

OURS = sorted(path for path in FOLDER.rglob("*") if path.is_file())
UNSAFE = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser")
of_the_session = pytest.mark.asyncio(loop_scope="session")


def test_the_page_has_its_files() -> None:
    assert {"index.html", "main.js", "style/colours.css"} <= set(page())


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_file_parses_html_or_requests_other_hosts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [word for word in UNSAFE if word in text] == []
    assert re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text.replace("http://www.w3.org/2000/svg", "")) == []


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_each_file_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250


def test_imported_files_exist() -> None:
    for name, body in page().items():
        if name.endswith(".js"):
            for wanted in re.findall(r'from "(\.[^"]+)"', body.decode()):
                assert (FOLDER / name).parent.joinpath(wanted).resolve().is_file(), (name, wanted)


def test_charts_come_from_the_webjar() -> None:
    found = charts(JARS)
    assert set(found) == {"uplot/uPlot.esm.js", "uplot/uPlot.min.css"}
    assert b"uPlot" in found["uplot/uPlot.esm.js"]


def test_missing_charts_are_logged_with_the_remedy(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert charts(tmp_path) == {}
    assert "run stateloop jars, or set STATELOOP_JARS" in caplog.text


@of_the_session
async def test_the_page_is_sent_with_a_strict_policy(stage: Stage) -> None:
    async with ClientSession(auto_decompress=False) as session, session.get(f"{stage.base}/") as response:
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert gzip.decompress(await response.read()) == page()["index.html"]


@of_the_session
async def test_a_cached_file_is_not_sent_again(stage: Stage) -> None:
    async with ClientSession() as session:
        async with session.get(f"{stage.base}/console/main.js") as response:
            assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
            tag = response.headers["ETag"]
        async with session.get(f"{stage.base}/console/main.js", headers={"If-None-Match": tag}) as again:
            assert again.status == 304
        plain = {"Accept-Encoding": "identity"}
        async with session.get(f"{stage.base}/console/main.js", headers=plain) as response:
            assert await response.read() == page()["main.js"]
            assert "Content-Encoding" not in response.headers


@of_the_session
@pytest.mark.parametrize("path", ["/console/nothing.js", "/console/..%2froutes.py", "/console/vendor/uplot/LICENSE"])
async def test_only_files_of_the_page_are_sent(stage: Stage, path: str) -> None:
    async with ClientSession() as session, session.get(stage.base + path) as response:
        assert response.status == 404


@of_the_session
@pytest.mark.parametrize("query", ["since=x", "since=-1", "since=99999999999999999999", "since="])
async def test_an_invalid_time_is_rejected(stage: Stage, query: str) -> None:
    async with ClientSession() as session, session.get(f"{stage.base}/v1/loop?{query}") as response:
        assert response.status == 400
        assert (await response.json(content_type=None))["type"] == "bad_request"


@of_the_session
async def test_before_the_first_observation_the_response_is_503(stage: Stage) -> None:
    async with ClientSession() as session:
        for path in ("/v1/loop", "/v1/loop/graph"):
            async with session.get(stage.base + path) as response:
                assert (response.status, response.headers["Retry-After"]) == (503, "1")
