from pathlib import Path

from services.catalogue.__main__ import tables, written

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "observability.md"


def test_the_committed_tables_are_those_of_the_catalogue() -> None:
    committed = DOCUMENT.read_text(encoding="utf-8")
    assert committed == written(committed), "stale: run `python -m services.catalogue docs/reference/observability.md`"
    assert committed.count(tables()) == 1
