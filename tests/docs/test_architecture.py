"""docs/architecture.md has the path of an event, an alert, a GET, a page and a watch; beside.toml the other files."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
BESIDE: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("beside.toml").read_text("utf-8"))


def files(section: str) -> list[str]:
    """Return the files of the path in a section: the steps of its table."""
    return re.findall(r"^\| \d+ \| `([^`]+)`", section_text(section), re.MULTILINE)


def all_files(section: str) -> list[str]:
    """Return all files of a section: those of the path, and those that run beside it."""
    return files(section) + BESIDE[section]["beside"]


def occasional_files(section: str) -> list[str]:
    """Return the files that run from time to time beside those of a section."""
    return BESIDE[section].get("at_times", [])


def section_text(section: str) -> str:
    """Return the text of a section."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


PATHS = {"One event": 27, "One alert": 14, "One GET": 15, "One page": 15, "One watch": 15}
"""The largest number of files of each path."""


def test_the_listed_files_exist() -> None:
    listed = [path for section in PATHS for path in all_files(section) + occasional_files(section)]
    assert [path for path in listed if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize(("section", "most"), PATHS.items())
def test_a_path_has_few_files(section: str, most: int) -> None:
    assert 0 < len(files(section)) <= most


def test_the_pictures_are_current() -> None:
    script = runpy.run_path(str(ROOT / "docs/images/architecture.py"))
    for name, picture in script["PICTURES"].items():
        drawn = script["path"](name).read_text(encoding="utf-8")
        assert drawn == script["svg"](picture), "run: python docs/images/architecture.py"
