from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "docs", ROOT / "bench" / "notes")
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("C*.md")),
    *(page for folder in FOLDERS for page in sorted(folder.rglob("*.md"))),
]
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
MOST_WORDS = 200
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[str]:
    found = LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def is_there(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_has_a_target(page: Path) -> None:
    assert [link for link in links(page) if not is_there(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_placeholder_is_left(page: Path) -> None:
    assert re.findall(r"@@\w*", page.read_text(encoding="utf-8")) == []


def test_the_pages_have_links_at_all() -> None:
    assert "docs/explanation/design.md" in links(ROOT / "README.md")


@pytest.mark.parametrize("record", sorted((ROOT / "docs/decisions").glob("0*.md")), ids=name)
def test_a_decision_is_short_and_complete(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert HEADING.findall(text)[1:] == ["Context", "Decision", "Consequences"]
    assert len(text.split()) <= MOST_WORDS


def test_the_index_lists_all_decisions() -> None:
    index = ROOT / "docs/decisions/index.md"
    assert sorted(links(index)) == sorted(path.name for path in index.parent.glob("0*.md"))
