"""A real Chromium that opens the console, and records its requests and errors."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import async_playwright

from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, ConsoleMessage, Page, Request

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
WITHIN_MS = 1000 * DEADLINE_S
LEAVES_WITHIN_MS = 10_000
POLL_S = 0.05
OUTSIDE = """
[...document.querySelectorAll("svg g:is(.node, .field, .enrichment)")].flatMap((group) => {
  const room = group.querySelector("rect").getBoundingClientRect();
  const texts = [...group.querySelectorAll("text")].filter((one) => !one.closest(".badge"));
  return texts.filter((one) => one.getBoundingClientRect().right > room.right + 0.5).map((one) => one.textContent);
})
"""
"""The texts in the picture and in the graph that go beyond their box."""


def device(key: str, state: str = "flights") -> str:
    """Return the route of a key."""
    return f"#/device/{state}/{quote(key, safe='')}"


def chromium() -> str:
    """Return the path of Chromium. Without it, skip the test, or fail it in CI."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        message = f"none of {', '.join(NAMES)} is installed: on Debian, apt install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """Run a browser."""
    path = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


class Visit:
    """A page of a stage. `errors` has the errors and warnings of its console, `foreign` its requests to other hosts."""

    def __init__(self, page: Page, stage: Stage) -> None:
        self.page = page
        self.stage = stage
        self.errors: list[str] = []
        self.foreign: list[str] = []
        page.on("console", self._logged)
        page.on("pageerror", self._failed)
        page.on("request", self._requested)

    async def go(self, route: str = "") -> None:
        """Open a view, and wait for the first metrics."""
        await self.page.goto(f"{self.stage.base}/{route}")
        await self.page.locator(".health:not([data-status=unknown])").wait_for()

    async def load(self, route: str) -> None:
        """Open a view with all files of the page, which `go` requests only once."""
        await self.page.goto("about:blank")
        await self.go(route)

    async def text(self, selector: str) -> str:
        """Return the text of an element."""
        return await self.page.locator(selector).first.inner_text()

    async def sees(self, selector: str, text: str) -> None:
        """Wait until the first element of the selector has this text; elements of SVG have no innerText."""
        read = f"((one) => one?.innerText ?? one?.textContent ?? '')(document.querySelector({json.dumps(selector)}))"
        await self.until(f"{read}.includes({json.dumps(text)})", but=read)

    async def until(self, condition: str, *, but: str = "document.querySelector('main').innerText") -> None:
        """Wait until an expression of JavaScript is true, or fail with the value of the expression `but`.

        The page's policy forbids the wait of Playwright.
        """
        deadline = time.monotonic() + WITHIN_MS / 1000
        while not await self.page.evaluate(condition):
            if time.monotonic() > deadline:
                pytest.fail(
                    f"not true within {WITHIN_MS} ms: {condition}; the page has {await self.page.evaluate(but)!r}"
                )
            await asyncio.sleep(POLL_S)

    def check(self) -> None:
        """Check that the page logged no error and sent no foreign request."""
        assert self.errors == [], self.errors
        assert self.foreign == [], self.foreign

    def check_only(self, text: str) -> None:
        """Check that the page logged errors with this text and no other ones, and forget them."""
        assert self.errors
        assert [error for error in self.errors if text not in error] == []
        self.errors.clear()

    def leave(self) -> None:
        """Record nothing any more."""
        self.page.remove_listener("console", self._logged)
        self.page.remove_listener("pageerror", self._failed)
        self.page.remove_listener("request", self._requested)

    def _logged(self, message: ConsoleMessage) -> None:
        """Record an error, unless it is of the page that was in the tab before: it may come a moment later."""
        source = urlsplit(message.location.get("url", "")).netloc
        if message.type in ("error", "warning") and source in ("", urlsplit(self.stage.base).netloc):
            self.errors.append(message.text)

    def _failed(self, error: PlaywrightError) -> None:
        self.errors.append(str(error))

    def _requested(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.stage.base).netloc:
            self.foreign.append(request.url)


@asynccontextmanager
async def opened(browser: Browser) -> AsyncIterator[Page]:
    """Open the tab that all visits share, since a new one costs a second of CPU. A tab that hangs is replaced.

    What a page stores belongs to its origin: each stage has a port of its own.
    """
    context = browser.contexts[0] if browser.contexts else await browser.new_context(timezone_id="UTC")
    page = context.pages[0] if context.pages else await context.new_page()
    page.set_default_timeout(WITHIN_MS)
    try:
        yield page
    finally:
        try:
            await page.goto("about:blank", timeout=LEAVES_WITHIN_MS)
        except PlaywrightError:
            await page.close()


@asynccontextmanager
async def visiting(browser: Browser, stage: Stage, *, width: int = 1280, height: int = 900) -> AsyncIterator[Visit]:
    """Visit a stage on a screen of this size, in the light theme, and without animations: they take CPU."""
    async with opened(browser) as page:
        await page.set_viewport_size({"width": width, "height": height})
        await page.emulate_media(color_scheme="light", reduced_motion="reduce")
        visit = Visit(page, stage)
        try:
            yield visit
        finally:
            visit.leave()
