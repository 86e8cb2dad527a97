"""A real Chromium that looks at the console, and records its requests and errors."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import async_playwright

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, ConsoleMessage, Error, Page, Request

    from tests.services.query.console.stage import Stage

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WITHIN_MS = 60_000
POLL_S = 0.02


def chromium() -> str:
    """Where Chromium is. Skips the test without one; in CI there has to be one."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        told = f"none of {', '.join(NAMES)} is installed: on Debian, apt install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return found


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A browser that runs."""
    path = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


class Visit:
    """A page that looks at a stage. `complaints` has errors of its console, `strangers` requests to other hosts."""

    def __init__(self, page: Page, stage: Stage) -> None:
        self.page = page
        self.stage = stage
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        page.set_default_timeout(WITHIN_MS)
        page.on("console", self._said)
        page.on("pageerror", self._failed)
        page.on("request", self._requested)

    async def go(self, route: str = "") -> None:
        """Show a view, and wait for the first figures."""
        await self.page.goto(f"{self.stage.base}/{route}")
        await self.page.locator(".health:not([data-status=unknown])").wait_for()

    async def text(self, selector: str) -> str:
        """The text of an element."""
        return await self.page.locator(selector).first.inner_text()

    async def until(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true. Playwright's own wait has the page compile it: forbidden."""
        async with asyncio.timeout(WITHIN_MS / 1000):
            while not await self.page.evaluate(condition):  # noqa: ASYNC110  # a page does not report its changes
                await asyncio.sleep(POLL_S)

    def check(self) -> None:
        """Nothing went wrong that a person would not see."""
        assert self.complaints == []
        assert self.strangers == []

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _failed(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _requested(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.stage.base).netloc:
            self.strangers.append(request.url)


@asynccontextmanager
async def visiting(browser: Browser, stage: Stage, **told: object) -> AsyncIterator[Visit]:
    """A visit in a window of its own: `width`, `height`, `scheme` (light or dark)."""
    size = {"width": told.get("width", 1280), "height": told.get("height", 900)}
    scheme: Any = told.get("scheme", "light")
    context = await browser.new_context(viewport=size, color_scheme=scheme, timezone_id="UTC")  # type: ignore[arg-type]
    try:
        yield Visit(await context.new_page(), stage)
    finally:
        await context.close()
