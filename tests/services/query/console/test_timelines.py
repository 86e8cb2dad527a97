"""Series and coverage of a patient in a real Chromium: a running trace of blobs, with gaps, and a strip."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
import pytest_asyncio

from contracts import Suite
from tests.services.query.console.browser import visiting
from tests.services.query.console.stage import Stage
from tests.services.query.console.ward import VITALS, Ward, ward

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser

    from tests.services.query.console.browser import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
TRACE = "[aria-label='Series pulse']"
STRIP = "[aria-label='Coverage covered']"
LOST = {12, 13, 31}
"""The seconds whose chunks are lost."""


class Scene(NamedTuple):
    """A page with the patients on it."""

    visit: Visit
    ward: Ward

    async def readout(self, panel: str, text: str) -> None:
        """Wait until the line below a picture has this text."""
        await self.visit.until(f'document.querySelector("{panel} .readout")?.textContent.includes({text!r})')

    async def kinds(self) -> list[str]:
        """Return the kinds of time in the strip, from left to right."""
        script = f"[...document.querySelectorAll(\"{STRIP} rect\")].map((one) => one.getAttribute('class'))"
        found: list[str] = await self.visit.page.evaluate(script)
        return found

    async def red_pixels(self) -> int:
        """Return the percentage of the trace that is shaded as a gap."""
        script = f"""(() => {{
          const canvas = document.querySelector("{TRACE} canvas");
          const probe = document.createElement("i");
          probe.style.color = "var(--red-soft)";
          document.body.append(probe);
          const wanted = getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(Number);
          probe.remove();
          const row = canvas.getContext("2d").getImageData(0, Math.round(canvas.height * 0.15), canvas.width, 1).data;
          let found = 0;
          for (let at = 0; at < row.length; at += 4) found += wanted.every((one, n) => Math.abs(one - row[at + n]) < 2);
          return found / canvas.width;
        }})()"""
        found: float = await self.visit.page.evaluate(script)
        return round(100 * found)


@pytest_asyncio.fixture(loop_scope="session")
async def scene(browser: Browser, tmp_path: Path) -> AsyncIterator[Scene]:
    """Give a page over a patient of 38 seconds, three of which are lost."""
    with ward(tmp_path) as (dependencies, patients):
        async with Stage(dependencies=dependencies, suite=Suite(VITALS)).serving() as stage:
            patients.stage = stage
            patients.arrive("patient-7", sorted(set(range(38)) - LOST))
            stage.work(2)
            async with visiting(browser, stage) as visit:
                yield Scene(visit, patients)
                visit.check()


async def test_the_blobs_of_a_patient_are_a_trace_and_a_strip_that_grow_live(scene: Scene) -> None:
    await scene.visit.go("#/device/vitals/patient-7/2026-05-01T08:00:10.000Z")
    await scene.readout(TRACE, "1800 samples at 100 Hz up to 08:00:20")  # a chosen blob: the trace ends with it
    await scene.visit.page.click("text=Newest window")
    await scene.readout(TRACE, "2700 samples at 100 Hz up to 08:00:38, 2 gaps of 3 s")
    await _has_gaps(scene)
    await _has_data_gaps_and_open_time(scene)

    scene.ward.arrive("patient-7", [38])  # the open blob grows
    await scene.readout(TRACE, "up to 08:00:39")
    scene.ward.arrive("patient-7", [39, 40, 41])  # and the next one follows
    await scene.readout(TRACE, "up to 08:00:42, 2 gaps of 3 s")
    scene.ward.arrive("patient-7", [31])  # late, in a blob that is not the newest
    await scene.readout(TRACE, "up to 08:00:42, 1 gap of 2 s")
    scene.ward.arrive("patient-7", sorted(LOST))
    await scene.visit.until(f'document.querySelectorAll("{STRIP} tbody tr").length === 1')


async def _has_gaps(scene: Scene) -> None:
    span = scene.visit.page.locator(TRACE).get_by_label("Time at once")
    assert await scene.visit.page.locator(f"{TRACE} canvas").count() == 1
    assert 7 <= await scene.red_pixels() <= 12, "three of thirty seconds"
    await span.select_option("10")
    await scene.readout(TRACE, "900 samples at 100 Hz up to 08:00:38, 1 gap of 1 s")
    await span.select_option("30")


async def _has_data_gaps_and_open_time(scene: Scene) -> None:
    page, kinds = scene.visit.page, ["gap", "data", "gap", "data", "gap", "data", "open"]
    await scene.readout(STRIP, "14.7 % with data, 3 gaps")
    assert await scene.kinds() == kinds
    await page.locator(STRIP).get_by_label("Windows of coverage").select_option("6")
    await scene.readout(STRIP, "the longest of 20 s")
    assert await scene.kinds() == kinds
    rows = await page.locator(f"{STRIP} tbody tr").all_text_contents()
    assert rows[0].endswith("1.0 s")
    box = await page.locator(f"{STRIP} .strip").bounding_box()
    assert box
    await page.mouse.move(box["x"] + box["width"] * 52.5 / 60, box["y"] + 5)
    await scene.readout(STRIP, "data: 2026-05-01 08:00:32")
