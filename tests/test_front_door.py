"""`stateloop` is what users import: complete, documented, cheap to import, and all that pages and examples use."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import contracts
import stateloop
from services.tools.reference import page

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORTED = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
INTERNAL = {"bench", "contracts", "services", "spark_app"}
HEAVY = {"aiohttp", "confluent_kafka", "hypothesis", "pyspark"}
ERRORS = {name for name in stateloop.__all__ if name.endswith("Error")}
WITHOUT_ARGUMENTS = {"AlertEvent", "Enrichment", "Reducer", "Snapshot"}
"""An application does not declare them: it is given them, or derives its own class."""


def imported(code: str) -> set[str]:
    return set(IMPORTED.findall(code))


def modules() -> list[str]:
    paths = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "stateloop").rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def test_each_declaration_is_in_the_reference_and_nothing_else() -> None:
    entries = {heading.partition(".")[0] for heading in re.findall(r"^### (\S+)", page(), re.MULTILINE)}
    assert set(stateloop.__all__) - ERRORS - WITHOUT_ARGUMENTS == entries


def test_each_module_has_its_reference() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference/api").glob("*.md"))
    assert sorted(re.findall(r"^::: (\S+)$", text, re.MULTILINE)) == modules()


def test_an_application_may_import_all_that_contracts_exports() -> None:
    assert set(contracts.__all__) <= set(stateloop.__all__)
    assert all(getattr(stateloop, name) is getattr(contracts, name) for name in contracts.__all__)


@pytest.mark.parametrize(
    ("module", "exported"),
    [
        ("stateloop.client", "services.client"),
        ("stateloop.sinks", "contracts.sinks"),
        ("stateloop.testing", "contracts.testing"),
    ],
)
def test_a_module_exports_all_of_the_internal_one(module: str, exported: str) -> None:
    names = importlib.import_module(exported).__all__
    assert set(importlib.import_module(module).__all__) == set(names)


def loaded_by(module: str) -> set[str]:
    """Return the packages that an import of this module loads."""
    code = f"import {module}, sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_import_of_the_declarations_and_the_test_kit_loads_no_client_and_no_spark() -> None:
    loaded = loaded_by("stateloop.testing.stores")
    assert "stateloop" in loaded
    assert loaded & (HEAVY | {"services"}) == set()


def test_the_import_of_the_client_loads_only_its_http_client() -> None:
    assert loaded_by("stateloop.client") & HEAVY == {"aiohttp"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_code_of_a_page_imports_nothing_internal(path: Path) -> None:
    snippets = SNIPPET.findall(path.read_text(encoding="utf-8"))
    assert imported("\n".join(snippets)) & INTERNAL == set()


def test_examples_import_nothing_internal() -> None:
    found = {path: imported(path.read_text(encoding="utf-8")) for path in (ROOT / "examples").rglob("*.py")}
    assert any("stateloop" in names for names in found.values())
    assert {str(path.relative_to(ROOT)) for path, names in found.items() if names & INTERNAL} == set()
