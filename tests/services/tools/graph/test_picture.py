from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from examples.flights.application import app as flights
from services.tools.graph.picture import picture
from tests.services.tools.graph.drawn import app

CHECKOUT = Path(__file__).parents[4]
SVG = "{http://www.w3.org/2000/svg}"


def test_every_enrichment_field_and_need_is_drawn_inside_the_page() -> None:
    root = ET.fromstring(picture(app))  # noqa: S314  # our own
    texts = [element.text for element in root.iter(f"{SVG}text")]
    for name in ("cars", "place", "rule", "fit", "fine", "lat", "speed", "at", "when speed > rule.value"):
        assert name in texts
    lines = [path.get("class") for path in root.iter(f"{SVG}path")]
    assert lines.count("line optional") == 1
    assert lines.count("line own") == 1
    assert lines.count("line") == 6
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for box in root.iter(f"{SVG}rect"):
        x, y = float(box.get("x", 0)), float(box.get("y", 0))
        assert 0 <= x <= x + float(box.get("width", 0)) <= width
        assert 0 <= y <= y + float(box.get("height", 0)) <= height


def test_it_has_colours_for_dark_pages() -> None:
    light, dark = picture(app).split("prefers-color-scheme: dark")
    assert set(re.findall(r"#[0-9a-f]{6}", light.split("<style>")[1])).isdisjoint({"#1e1b4b"})
    assert "#1e1b4b" in dark


def test_the_picture_in_the_documents_is_that_of_the_application() -> None:
    committed = (CHECKOUT / "docs/images/flights.svg").read_text(encoding="utf-8")
    assert committed == picture(flights), (
        "run: stateloop graph examples.flights.application:app --svg docs/images/flights.svg"
    )
