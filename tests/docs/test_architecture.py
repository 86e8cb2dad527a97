"""The files that docs/architecture.md lists for one event and for one GET."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def files(section: str) -> list[str]:
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\| \d+ \| `([^`]+)`", text, re.MULTILINE)


def test_the_listed_files_exist() -> None:
    assert [path for path in files("One event") + files("One GET") if not (ROOT / path).is_file()] == []


def test_an_event_meets_at_most_27_files_and_a_get_at_most_12() -> None:
    assert 0 < len(files("One event")) <= 27
    assert 0 < len(files("One GET")) <= 12


def test_the_picture_is_current() -> None:
    script = runpy.run_path(str(ROOT / "docs/images/architecture.py"))
    picture = (ROOT / "docs/images/architecture.svg").read_text(encoding="utf-8")
    assert picture == script["picture"](), "run: python docs/images/architecture.py docs/images/architecture.svg"
