from pathlib import Path

from services.tools.catalogue.__main__ import tables, written

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "observability.md"


def test_the_committed_tables_are_those_of_the_catalogue() -> None:
    committed = DOCUMENT.read_text(encoding="utf-8")
    assert committed == written(committed), (
        "stale: run `python -m services.tools.catalogue docs/reference/observability.md`"
    )
    assert committed.count(tables()) == 1
