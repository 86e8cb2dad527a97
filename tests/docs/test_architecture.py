"""The files that docs/architecture.md lists: for one event, for one alert, and for one GET."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def files(section: str) -> list[str]:
    """Return the files of the path in a section: the steps of its table."""
    return _listed(section, r"\d+")


def all_files(section: str) -> list[str]:
    """Return all files that a section lists: of the path, and those that run beside it."""
    return _listed(section, r"\d*")


def occasional_files(section: str) -> list[str]:
    """Return the files that run from time to time beside those of a section."""
    return _listed(section, "at times")


def _listed(section: str, step: str) -> list[str]:
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^\| ?{step} \| `([^`]+)`", text, re.MULTILINE)


def test_the_listed_files_exist() -> None:
    assert [
        path
        for path in all_files("One event") + all_files("One alert") + occasional_files("One alert") + files("One GET")
        if not (ROOT / path).is_file()
    ] == []


def test_an_event_meets_at_most_27_files_an_alert_14_and_a_get_14() -> None:
    assert 0 < len(files("One event")) <= 27
    assert 0 < len(files("One alert")) <= 14
    assert 0 < len(files("One GET")) <= 14


def test_the_picture_is_current() -> None:
    script = runpy.run_path(str(ROOT / "docs/images/architecture.py"))
    picture = (ROOT / "docs/images/architecture.svg").read_text(encoding="utf-8")
    assert picture == script["picture"](), "run: python docs/images/architecture.py docs/images/architecture.svg"
