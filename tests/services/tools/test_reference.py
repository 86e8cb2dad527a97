from pathlib import Path

import contracts
from contracts.reducers import Reducer
from services.tools.reference import page

OWN = [kind for kind in Reducer.__subclasses__() if kind.__module__.startswith("contracts.")]
"""Tests declare others."""
DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "declarations.md"
ERRORS = {"AbsentError", "DeclarationError", "PermanentCallError", "RetryableCallError", "StateloopError"}
PARTS = {"Api", "Enrichment", "Reducer"}
"""The methods of an Api have entries of their own; `enrichment` makes each Enrichment; each reducer has an entry."""


def test_the_committed_page_is_that_of_the_code() -> None:
    committed = DOCUMENT.read_text(encoding="utf-8")
    assert committed == page(), "stale: run `python -m services.tools.reference docs/reference/declarations.md`"


def test_each_declaration_has_an_entry() -> None:
    entries = {line.removeprefix("### ") for line in page().splitlines() if line.startswith("### ")}
    assert set(contracts.__all__) - ERRORS - PARTS <= entries


def test_an_argument_has_type_default_and_meaning() -> None:
    rows = page().splitlines()
    assert r"| `cache` | `Cache \| None` | `Cache()` |  |" in rows
    assert "| `timeout` | `timedelta` | `timedelta(seconds=5)` | The maximum time of one call. |" in rows
    assert "| `grace` | `timedelta` | `timedelta(minutes=10)` |  |" in rows
    assert "| `schema` | `Mapping[str, Any]` | required |  |" in rows


def test_a_reducer_has_signature_and_result_type() -> None:
    mean = page().partition("### Mean\n")[2].partition("###")[0]
    assert "`Mean(of: str | None = None)`" in mean
    assert "`T`: `int`, `float`. Type of the field of the state: `float | None`." in mean
    assert all(f"### {kind.__name__}\n" in page() for kind in OWN)
