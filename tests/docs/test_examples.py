"""Each example has a page with its picture, which is drawn from its code."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs/images/example_pictures.py"))
EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/application.py"))


def test_each_example_has_a_page() -> None:
    assert sorted(path.stem for path in (ROOT / "docs/examples").glob("*.md")) == EXAMPLES == sorted(SCRIPT["EXAMPLES"])


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_picture_is_current_and_on_the_page(example: str) -> None:
    committed = (ROOT / f"docs/images/example-{example}.svg").read_text(encoding="utf-8")
    assert committed == SCRIPT["picture"](example), (
        "run: PYTHONPATH=. python docs/images/example_pictures.py docs/images"
    )
    page = (ROOT / f"docs/examples/{example}.md").read_text(encoding="utf-8")
    assert f"(../images/example-{example}.svg)" in page
