"""One Chromium and one tab of it for all tests of the console, each with its own stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from tests.services.query.console.browser import launched, visiting
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Give a browser; Playwright is bound to the loop that started it, so tests share the session's."""
    async with launched() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def stage() -> AsyncIterator[Stage]:
    """Give a console over states in memory."""
    async with Stage().serving() as serving:
        yield serving


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, stage: Stage) -> AsyncIterator[Visit]:
    """Give a page without any requests yet, and check its errors after the test."""
    async with visiting(browser, stage) as found:
        yield found
        found.check()
