"""A rule is changed in a real Chromium, and alerts of the real derive worker appear without reloading."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.derive.alerted import APP
from tests.services.query.console.browser import WITHIN_MS, opened
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.asyncio(loop_scope="session")
CHECKOUT = Path(__file__).parents[4]


class Services:
    """A query service and a derive worker on topics of one test."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, stack: AsyncExitStack) -> None:
        self.port = free_port_pair()
        self._prefix, self._folder, self._stack = prefix, folder, stack
        self._window = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        self._environment = os.environ | {
            "STATELOOP_APPLICATION": "tests.services.derive.alerted:APP",
            "STATELOOP_KAFKA": bootstrap,
            "STATELOOP_QUERY_DATA": str(folder / "data"),
            "STATELOOP_INSTANCE": "one",
            "ALERTED_PREFIX": prefix,
        }
        self._producer = create_producer({"bootstrap.servers": bootstrap}, "test")
        subprocess.run([sys.executable, "-m", "services.tools.topics"], cwd=CHECKOUT, env=self._environment, check=True)
        self._start("query", STATELOOP_HTTP_PORT=str(self.port))
        self._start("derive")
        wait_until(self._is_ready, f"ready: see {folder}", DEADLINE_S)

    def measure(self, version: int, **values: int) -> None:
        """Write a snapshot of each of these sensors, as the job does."""
        for sensor, value in values.items():
            at = self._window + timedelta(seconds=version)
            one = Snapshot(device_id=sensor, first_seen=self._window, version=version, as_of=at, state={"value": value})
            home = partition(sensor.encode(), APP.topics.partitions)
            key = window_key(sensor, self._window)
            self._producer.produce(f"{self._prefix}snapshots", one.encode(), key, home)
        assert self._producer.flush(DEADLINE_S) == 0

    def _start(self, name: str, **settings: str) -> None:
        log = self._stack.enter_context((self._folder / f"{name}.log").open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", f"services.{name}"],
            cwd=CHECKOUT,
            env=self._environment | {"STATELOOP_GROUP": f"{self._prefix}{name}"} | settings,
            stdout=log,
            stderr=log,
        )
        self._stack.callback(process.wait, DEADLINE_S)
        self._stack.callback(process.kill)

    def _is_ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


async def alerts(page: Page, *keys: str) -> None:
    """Wait until the open alerts are those of these keys."""
    for key in keys:
        await page.locator(".alerts .key").get_by_text(key, exact=True).wait_for()
    await page.locator(f".alerts li >> nth={len(keys)}").wait_for(state="detached")


@pytest.mark.kafka
@pytest.mark.slow
async def test_a_rule_is_changed_on_the_page_and_an_alert_appears(
    browser: Browser, broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        services = await asyncio.to_thread(Services, broker.bootstrap, topics_prefix, tmp_path, stack)
        page = await stack.enter_async_context(opened(browser))
        page.set_default_timeout(WITHIN_MS)
        services.measure(1, kitchen=3, attic=7, cellar=5)
        await page.goto(f"http://127.0.0.1:{services.port}/#/rules")
        await page.get_by_text("There are no rules yet.").wait_for()
        await page.evaluate("window.isTheSamePage = true")
        await page.click("text=Add a rule")
        for field, value in (("row-key", "high"), ("field-high", "6"), ("field-low", "4")):
            await page.fill(f"#{field}", value)
        await page.click(".test")
        await page.locator(".tested-keys").get_by_text("attic").wait_for()
        await alerts(page)
        await page.click("text=Save")
        await alerts(page, "attic")
        await page.click("[aria-label='Edit high']")
        await page.fill("#field-high", "5")
        await page.click("text=Save")
        await alerts(page, "attic", "cellar")
        services.measure(2, kitchen=9, attic=1)
        await alerts(page, "kitchen", "cellar")
        assert "anonymous" in await page.locator("tr[data-key=high]").inner_text()
        assert await page.evaluate("window.isTheSamePage")
