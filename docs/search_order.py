"""A hook of mkdocs: answers come before reasons in the search."""

from typing import Any

BOOSTS = {
    "explanation/guarantees.md": 3.0,
    "how-to/troubleshooting.md": 3.0,
    "how-to/production-checklist.md": 2.0,
    "how-to/": 1.5,
    "decisions/": 0.1,
    "reference/api/": 0.1,
}
"""The weight of a page in the search, by the beginning of its path; 1 for the others."""


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Set the weight of a page, which the theme reads from its metadata."""
    boost = next((boost for path, boost in BOOSTS.items() if page.file.src_uri.startswith(path)), 1.0)
    page.meta.setdefault("search", {})["boost"] = boost
    return markdown
