"""Code that a page shows is a file that runs."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("README.md", "examples/scooters/application.py"),
        ("docs/enrichments.md", "tests/examples/scooters/test_ride.py"),
        ("docs/query.md", "tests/docs/asking.py"),
        ("docs/replay.md", "tests/docs/replaying.py"),
        ("docs/topics.md", "tests/docs/gateway.py"),
        ("docs/topics.md", "tests/docs/riding.py"),
    ],
)
def test_the_page_shows_this_very_file(page: str, file: str) -> None:
    shown = (ROOT / file).read_text(encoding="utf-8").strip()
    assert f"```python\n{shown}\n```" in (ROOT / page).read_text(encoding="utf-8")
